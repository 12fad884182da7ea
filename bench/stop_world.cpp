// How long it takes to stop the world: stop_world [WORKERS [ROUNDS]]. From a plain thread, over four runtimes. The
// first is idle. In the second fibers switch all the time. In the third they compute between safepoints. The fourth has
// a fiber that does not stop.

#include <ulexite.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using clock = std::chrono::steady_clock;

void print(const char* what, std::vector<double> micros) {
  std::sort(micros.begin(), micros.end());
  const auto at = [&](std::size_t percent) { return micros[(micros.size() - 1) * percent / 100]; };
  std::printf("%-28s p50 %8.1f us, p90 %8.1f us, p99 %8.1f us\n", what, at(50), at(90), at(99));
}

void measure(const char* what, runtime& rt, int rounds) {
  std::vector<double> micros;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = clock::now();
    {
      const stopped_world world(rt, std::chrono::seconds(20));
      micros.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  print(what, std::move(micros));
}

template <class Step>
void measure_with_fibers(const char* what, runtime& rt, int rounds, int fibers, Step step) {
  std::atomic<bool> over{false};
  std::vector<join_handle<>> all;
  for (int i = 0; i < fibers; ++i)
    all.push_back(rt.spawn([&] {
      while (!over.load(std::memory_order_relaxed)) step();  // hint
    }));
  measure(what, rt, rounds);
  over.store(true, std::memory_order_relaxed);  // hint
  for (auto& each : all) each.get();
}

void meet_a_hog(runtime& rt) {
  std::atomic<bool> over{false}, begun{false};
  auto hog = rt.spawn(fiber_options{.name = "hog"}, [&] {
    begun = true;
    while (!over) {
    }
  });
  while (!begun) std::this_thread::yield();
  const auto begin = clock::now();
  try {
    const stopped_world world(rt, std::chrono::milliseconds(50));
  } catch (const late_fibers& late) {
    const double millis = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
    std::printf("%-28s refused after %.1f ms: %s\n", "a hog, patience 50 ms", millis, late.what());
  }
  over = true;
  hog.get();
}

}  // namespace

int main(int argc, char** argv) {
  const auto workers = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 300;
  runtime rt({.threads = workers});
  rt.run([] {});
  std::printf("%zu workers on %u processors, %d stops\n", workers, std::thread::hardware_concurrency(), rounds);
  measure("idle", rt, rounds);
  measure_with_fibers("50 fibers that switch", rt, rounds, 50, [] { this_fiber::yield(); });
  measure_with_fibers("fibers that compute", rt, rounds, static_cast<int>(workers),
                      [] { this_fiber::yield_if_requested(); });
  meet_a_hog(rt);
}
