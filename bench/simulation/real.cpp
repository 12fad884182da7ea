// The simulation's burst on the real runtime: simulation_real WORKERS FIBERS LENGTH_NS ROUNDS SHARE
// Prints quartiles of the efficiency, work / (workers * time). Each round begins with all workers asleep. The machine
// may have other work. So a round counts only if its threads waited for a processor in less than SHARE of it.

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace ux = ulexite;
using namespace std::chrono_literals;

std::int64_t now_ns() { return ux::steady_clock::now().time_since_epoch().count(); }

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

// How long all threads of this process together have been runnable without a processor. More than one that is runnable
// now has not yet counted its waiting: then it is for ever.
double waited_for_processors() {
  double total = 0;
  int runnable = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    double ran = 0, waited = 0;
    std::string id, name, state;
    if (std::ifstream(thread.path() / "schedstat") >> ran >> waited) total += waited;
    if (std::ifstream(thread.path() / "stat") >> id >> name >> state) runnable += state == "R";
  }
  return runnable > 1 ? std::numeric_limits<double>::infinity() : total;
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
  std::uint64_t steals = 0, wakes = 0;  // in the rounds that count
  ux::runtime runtime({.threads = workers, .stack_size = 64 * 1024});
  runtime.run([&] {
    double last = 0, took = 0, waited = 0;
    auto before = runtime.metrics();
    for (int round = 0; round <= rounds; ++round) {
      ux::this_fiber::sleep_for(3ms);  // a thread that came too late for the last round counts its waiting by now
      const double waited_by_now = waited_for_processors();
      const auto now = runtime.metrics();
      if (round > 3 && std::isfinite(waited) &&
          waited_by_now - waited < share * took) {  // from the fourth on all threads were there
        efficiency.push_back(last);
        steals += now.steals - before.steals;
        wakes += now.wakes - before.wakes;
      }
      waited = waited_by_now;
      before = now;
      const std::int64_t start = now_ns();
      ux::task_group group;
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
  std::printf(
      "%zu workers, %d fibers of %.0f ns: efficiency median %.3f, quartiles %.3f and %.3f, best %.3f in %zu rounds; "
      "steals per "
      "fiber %.4f, wakes per burst %.2f\n",
      workers, fibers, length, at(.5), at(.25), at(.75), at(1), efficiency.size(),
      static_cast<double>(steals) / fibers / static_cast<double>(efficiency.size()),
      static_cast<double>(wakes) / static_cast<double>(efficiency.size()));
  return 0;
}
