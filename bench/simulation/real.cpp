// The simulation's burst on the real runtime: simulation_real WORKERS FIBERS LENGTH_NS ROUNDS SHARE
// Prints quartiles of the efficiency, work / (workers * time). Each round begins with all workers asleep. The machine
// may do something else too: a round counts only if its threads waited for a processor for less than SHARE of it.

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace {

namespace ux = ulexite;
using namespace std::chrono_literals;

std::int64_t now_ns() { return ux::clock::now().time_since_epoch().count(); }

// A chain of multiplications, which takes the same time on a busy and on an idle core.
[[gnu::noinline]] void compute(std::int64_t turns) {
  std::uint64_t x = 1;
  for (std::int64_t i = 0; i < turns; ++i) {
    x *= 6364136223846793005u;
    asm volatile("" : "+r"(x));
  }
}

double turns_per_ns() {
  constexpr std::int64_t turns = 100'000;
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t start = now_ns();
    compute(turns);
    best = std::min(best, now_ns() - start);
  }
  return static_cast<double>(turns) / static_cast<double>(best);
}

// How long all threads of this process together have been runnable without a processor.
std::int64_t waited_for_processors() {
  std::int64_t total = 0, ran = 0, waited = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    if (std::ifstream(thread.path() / "schedstat") >> ran >> waited) total += waited;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s WORKERS FIBERS LENGTH_NS ROUNDS SHARE\n", argv[0]);
    return 2;
  }
  const std::size_t workers = std::stoul(argv[1]);
  const int fibers = std::atoi(argv[2]), rounds = std::atoi(argv[4]);
  const double length = std::atof(argv[3]), share = std::atof(argv[5]);
  const auto turns = static_cast<std::int64_t>(length * turns_per_ns());
  std::vector<double> efficiency;
  ux::runtime runtime({.threads = workers, .stack_size = 64 * 1024});
  runtime.run([&] {
    double last = 0, took = 0;
    std::int64_t waited = 0;
    for (int round = 0; round <= rounds; ++round) {
      ux::this_fiber::sleep_for(3ms);  // a thread that came too late for the last round counts its waiting by now
      const std::int64_t waited_by_now = waited_for_processors();
      const bool undisturbed = static_cast<double>(waited_by_now - waited) < share * took;
      if (round > 3 && undisturbed) efficiency.push_back(last);  // all threads were there
      waited = waited_by_now;
      const std::int64_t start = now_ns();
      ux::wait_group group;
      for (int i = 0; i < fibers; ++i) group.spawn([turns] { compute(turns); });
      group.wait();
      took = static_cast<double>(now_ns() - start) * static_cast<double>(workers);
      last = fibers * length / took;
    }
  });
  if (efficiency.empty()) {
    std::puts("every round was disturbed");
    return 1;
  }
  std::sort(efficiency.begin(), efficiency.end());
  const auto at = [&](double quantile) {
    return efficiency[static_cast<std::size_t>(quantile * static_cast<double>(efficiency.size() - 1))];
  };
  const auto metrics = runtime.metrics();
  std::printf(
      "%zu workers, %d fibers of %.0f ns: efficiency median %.3f, quartiles %.3f and %.3f, best %.3f in %zu rounds; "
      "steals per "
      "fiber %.4f, wakes per burst %.2f\n",
      workers, fibers, length, at(.5), at(.25), at(.75), at(1), efficiency.size(),
      static_cast<double>(metrics.steals) / fibers / rounds, static_cast<double>(metrics.wakes) / rounds);
  return 0;
}
