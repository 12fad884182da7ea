// Compresses files by a pool of workers: FILE becomes OUTPUT/FILE.gz, as gzip would make it.
//
//   worker_pool --output /tmp/packed *.log
//   find . -name '*.log' | worker_pool --workers 8 --attempts 5 --output /tmp/packed
//
// A job that fails is tried again after a while. On SIGINT or SIGTERM it begins no other job, finishes the jobs under
// way, and reports its results; a second signal cancels them.

#include "../program.hpp"
#include "pool.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

namespace {

void describe(CLI::App& app, pool_options& given) {
  app.add_option("FILE", given.files, "Files to compress; none: their names are read from standard input, one a line");
  app.add_option("--output", given.output, "Existing directory for the results")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--workers", given.workers, "Files compressed at the same time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--attempts", given.attempts, "How often a file is tried")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option_function<unsigned>(
      "--retry-delay", [&](unsigned milliseconds) { given.retry_delay = std::chrono::milliseconds(milliseconds); },
      "Milliseconds between two attempts [100]");
}

}  // namespace

int main(int argc, char** argv) {
  pool_options given;
  return examples::run_program(
      argc, argv, "worker_pool", "Compresses files by a pool of workers; tries again what fails.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        const pool_summary made = ulexite::runtime(options).run([&] { return pool(given).run(signals); });
        std::printf("%ju compressed, %ju failed, %ju cancelled, %ju not begun, %ju retries; %ju bytes became %ju\n",
                    made.done, made.failed, made.cancelled, made.not_begun, made.retries, made.read, made.written);
        return made.failed + made.cancelled + made.not_begun == 0 ? 0 : 1;
      });
}
