// Workloads, with which other runtimes are measured too: bench WORKLOAD THREADS N
//
// Prints "metric value" lines; exits with 3 for a workload that it does not have. WORKLOAD+fp does a floating-point
// operation in each of its operations (float_work).

#include "workloads/common.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>

namespace {

using namespace bench;

std::map<std::string, std::function<void(int)>> workloads{
    {"spawn_join", spawn_join},
    {"spawn_waves", spawn_waves},
    {"spawn_wait", spawn_wait},
    {"spawn_batch", spawn_batch},
    {"jobs", jobs},
    {"yield2", [](int n) { yields(2, n); }},
    {"yield1k", [](int n) { yields(1000, n); }},
    {"pingpong", pingpong},
    {"pairs8", pairs8},
    {"pipe128", [](int n) { pipe(1, 1, n); }},
    {"mpmc", [](int n) { pipe(4, 4, n); }},
    {"select4", select4},
    {"when_all10", when_all10},
    {"mutex1", [](int n) { locks(1, n); }},
    {"mutex8", [](int n) { locks(8, n); }},
    {"convoy", convoy},
    {"skynet", skynet},
    {"skynet_fj", skynet_fj},
    {"fib", fib},
    {"nqueens", nqueens},
    {"matmul", matmul},
    {"parked", parked},
    {"co_pingpong", [](int n) { co_pingpong(false, n); }},
    {"co_mixed", [](int n) { co_pingpong(true, n); }},
    {"co_spawn_wait", co_spawn_wait},
    {"co_parked", [](int n) { co_parked(false, n); }},
    {"co_parked_select", [](int n) { co_parked(true, n); }},
    {"timers", timers},
    {"sleep1ms", sleep1ms},
    {"wake", wake},
};

// mix2x10 to mix2000x5000: so many fibers that compute, and for so many microseconds. mixspawns, mixtimers: floods.
void add_mixes() {
  const auto add = [](const std::string& load) { workloads["mix" + load] = [load](int n) { mix(load, n); }; };
  for (const char* fibers : {"2", "16", "2000"})
    for (const char* us : {"10", "100", "1000", "5000"}) add(std::string(fibers) + "x" + us);
  add("spawns");
  add("timers");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s WORKLOAD[+fp] THREADS N\n", argv[0]);
    return 2;
  }
  std::string name = argv[1];
  if (name.ends_with("+fp")) {
    name.resize(name.size() - 3);
    with_float_work = true;
  }
  add_mixes();
  const auto workload = workloads.find(name);
  if (workload == workloads.end()) return 3;
  try {
    ux::runtime runtime({.threads = std::stoul(argv[2]), .stack_size = 64 * 1024});
    runtime.run(workload->second, std::stoi(argv[3]));
    const auto metrics = runtime.metrics();
    if (std::getenv("ULEXITE_BENCH_METRICS"))
      std::fprintf(stderr, "dispatches %lu in place %lu steals %lu parks %lu wakes %lu polls %lu overflows %lu\n",
                   metrics.dispatches, metrics.starts_in_place, metrics.steals, metrics.parks, metrics.wakes,
                   metrics.polls, metrics.overflows);
    require(metrics.lost_wakeups == 0, "a wake-up was lost");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
