// The simulation's burst on the real runtime: simulation_real WORKERS FIBERS LENGTH_NS ROUNDS
// Prints quantiles of the efficiency, work / (workers * time). Each round begins with all workers asleep. On a machine
// that does something else too, the upper quantiles are the rounds that were disturbed least.

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s WORKERS FIBERS LENGTH_NS ROUNDS\n", argv[0]);
    return 2;
  }
  const std::size_t workers = std::stoul(argv[1]);
  const int fibers = std::atoi(argv[2]), rounds = std::atoi(argv[4]);
  const double length = std::atof(argv[3]);
  const auto turns = static_cast<std::int64_t>(length * turns_per_ns());
  std::vector<double> efficiency;
  ux::runtime runtime({.threads = workers, .stack_size = 64 * 1024});
  runtime.run([&] {
    for (int round = 0; round < rounds; ++round) {
      ux::this_fiber::sleep_for(1ms);
      const std::int64_t start = now_ns();
      ux::wait_group group;
      for (int i = 0; i < fibers; ++i) group.spawn([turns] { compute(turns); });
      group.wait();
      const auto took = static_cast<double>(now_ns() - start) * static_cast<double>(workers);
      if (round >= 3) efficiency.push_back(fibers * length / took);  // by then all threads and stacks are there
    }
  });
  if (efficiency.empty()) return 2;
  std::sort(efficiency.begin(), efficiency.end());
  const auto at = [&](double quantile) {
    return efficiency[static_cast<std::size_t>(quantile * static_cast<double>(efficiency.size() - 1))];
  };
  const auto metrics = runtime.metrics();
  std::printf(
      "%zu workers, %d fibers of %.0f ns: efficiency median %.3f, 3/4 %.3f, 9/10 %.3f, best %.3f; steals per "
      "fiber %.4f, wakes per burst %.2f\n",
      workers, fibers, length, at(.5), at(.75), at(.9), at(1), static_cast<double>(metrics.steals) / fibers / rounds,
      static_cast<double>(metrics.wakes) / rounds);
  return 0;
}
