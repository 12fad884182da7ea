// worker_pool: each file is compressed once, or has failed as often as is allowed, or was stopped, and the summary says
// so. Its coordinator and its workers are the real ones; files are not: gzip_file takes time here, and fails at times.
#include "../../examples/worker_pool/gzip.hpp"
#include "../../examples/worker_pool/pool.hpp"
#include "world.hpp"

#include <csignal>
#include <map>
#include <string>
#include <system_error>

namespace {

using namespace worlds;

struct record {
  unsigned attempts = 0, compressed = 0;
};

struct files {
  std::map<std::string, record> of;
  std::size_t under_way = 0, most = 0;
};

files* here = nullptr;  // of the run

void world() {
  files disk;
  here = &disk;
  const pool_options options{.files = {"a", "b", "c", "d"}, .workers = 2, .attempts = 2, .retry_delay = 20ms};
  examples::stop_signals signals;
  pool jobs(options);
  const std::uint32_t stops = choose(3);
  auto stopping = ux::spawn([&] {
    for (std::uint32_t i = 0; i < stops; ++i) {
      ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(30)));
      signals.channel().send(SIGINT);
    }
  });
  const pool_summary said = jobs.run(signals);
  stopping.join();

  std::uint64_t compressed = 0;
  for (const auto& [name, file] : disk.of) {
    expect(file.compressed <= 1, "no file is compressed twice");
    expect(file.attempts <= options.attempts, "no more attempts than are allowed");
    if (stops == 0) expect(file.compressed == 1 || file.attempts == options.attempts, "no job is given up early");
    compressed += file.compressed;
  }
  expect(said.done + said.failed + said.cancelled + said.not_begun == options.files.size(), "each job has one end");
  expect(said.done + said.cancelled >= compressed && said.done <= compressed, "what is said to be done is done");
  expect(said.read == 10 * said.done, "the sizes are those of the jobs done");
  expect(disk.most <= options.workers, "no more jobs at a time than workers");
  if (stops == 0) expect(said.not_begun == 0, "every job is begun");
  if (stops < 2) expect(said.cancelled == 0, "what is under way is finished");
}

}  // namespace

gzip_result gzip_file(const std::string& from, const std::string&) {
  record& file = here->of[from];
  ++file.attempts;
  here->most = std::max(here->most, ++here->under_way);
  struct end {
    ~end() { --here->under_way; }
  } const at_end;
  if (choose(2) == 0) ux::this_fiber::yield();
  ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(30)));
  if (choose(3) == 0) throw std::system_error(ENOSPC, std::system_category(), from);
  ++file.compressed;
  return {.read = 10, .written = 5};
}

int main(int argc, char** argv) {
  if (!std::freopen("/dev/null", "w", stderr)) return 2;  // the pool reports each job
  const examples::stop_signals keep;                      // of the runs' sets, the thread that they share
  return run(argc, argv, world);
}
