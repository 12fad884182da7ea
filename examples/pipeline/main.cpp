// A cancellable pipeline: SHA-256 of many files, several at a time, printed in the order in which they were named.
//
//   pipeline FILE...                 find . -type f | pipeline --workers 8
//
//                  +-> hash -+
//   read the paths +-> hash -+> collect and print
//                  +-> hash -+
//        |                         ^
//        +------- the order -------+
//
// Each arrow is a channel. None of them holds more than some paths, so a slow stage slows the stages before it. The
// memory is bounded for any number of files. The first error ends all stages. SIGINT and SIGTERM do the same.

#include "../program.hpp"
#include "sha256.hpp"

#include <ulexite.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace ux = ulexite;

struct arguments {
  std::vector<std::string> files;
  std::size_t workers = 4;
};

// A file under way. Its digest has its own channel, so the collector can wait for this digest in order.
struct item {
  std::string path;
  ux::channel<std::string> digest{1};
};
using item_ptr = std::shared_ptr<item>;

class pipeline {
 public:
  explicit pipeline(const arguments& given) : given_(given), in_order_(2 * given.workers) {}

  // Waits for all stages. All of them are children, so the failure of one cancels all others.
  void run() {
    ux::scope([&](ux::task_group& stages) {
      stages.spawn([&] { read_paths(); });
      for (std::size_t i = 0; i < given_.workers; ++i) stages.spawn([&] { hash_files(); });
      stages.spawn([&] { collect(); });
    });
  }

  [[nodiscard]] std::uint64_t printed() const { return printed_; }

 private:
  void read_paths() {
    for (const std::string& path : given_.files) pass_on(path);
    if (given_.files.empty()) {
      ux::net::buffered_reader lines(ux::os::standard_input());
      while (const auto path = lines.read_line()) pass_on(std::string(*path));
    }
    to_hash_.close();
    in_order_.close();
  }

  void pass_on(std::string path) {
    auto each = std::make_shared<item>(std::move(path));
    in_order_.send(each);
    to_hash_.send(std::move(each));
  }

  void hash_files() {
    for (const item_ptr& each : to_hash_) each->digest.send(sha256_of(each->path));
  }

  void collect() {
    for (const item_ptr& each : in_order_) {
      ux::os::standard_output().write(*each->digest.receive() + "  " + each->path + '\n');
      ++printed_;
    }
  }

  const arguments& given_;
  ux::channel<item_ptr> to_hash_;   // no buffer: a path waits for a free worker
  ux::channel<item_ptr> in_order_;  // files that are being hashed, or wait to be printed
  std::uint64_t printed_ = 0;       // the collector's, until run() has ended
};

int run(const arguments& given, examples::stop_signals& signals) {
  pipeline stages(given);
  const auto report = [&](const char* why) {
    std::fprintf(stderr, "pipeline: %s after %ju files\n", why, std::uintmax_t{stages.printed()});
  };
  try {
    const auto first = ux::when_any([&] { stages.run(); }, [&] { return signals.wait(); });
    if (first.index == 0) return 0;
    const int signal = std::get<1>(first.value);
    report(examples::name_of(signal));
    return 128 + signal;
  } catch (const std::exception&) {
    report("failed");
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("FILE", given.files, "Files to hash; none: their names are read from standard input, one a line");
    app.add_option("--workers", given.workers, "Files hashed at the same time")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
  };
  return examples::run_program(argc, argv, "pipeline",
                               "Prints the SHA-256 of files, in the order in which they are named, like sha256sum.",
                               describe, [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 return ux::runtime(options).run(run, std::cref(given), std::ref(signals));
                               });
}
