// The costs between several cores. These are the costs that bench/simulation takes as its defaults.

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/cache_line.hpp>
#include <ulexite/base/fences.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/evloop/event_loop.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace ulexite::detail;
using clock = std::chrono::steady_clock;

double seconds(clock::duration time) { return std::chrono::duration<double>(time).count(); }

struct alignas(cache_line) line {
  std::atomic<long> value{0};
};

// One way of a line that two cores write in turns: what a worker pays for a word that another wrote last.
void line_transfer(benchmark::State& state) {
  line shared;
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      if (const long seen = shared.value.load(std::memory_order_acquire); seen % 2 == 1)  // pairs with the store below
        shared.value.store(seen + 1, std::memory_order_release);                          // pairs with the load below
  });
  long turn = 0;
  for (auto _ : state) {
    shared.value.store(turn + 1, std::memory_order_release);                     // pairs with the load above
    while (shared.value.load(std::memory_order_acquire) != turn + 2) turn += 0;  // pairs with the store above
    turn += 2;
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(line_transfer)->Name("cores/line there and back")->UseRealTime();

// A read of the four words of a victim's ring and jobs, just after the victim has written all of them.
void probe(benchmark::State& state) {
  const auto lines = std::make_unique<std::array<line, 4>>();
  line turn;
  std::jthread victim([&](const std::stop_token& stop) {
    long done = 0;
    while (!stop.stop_requested()) {
      if (turn.value.load(std::memory_order_acquire) == done) continue;           // pairs with the store below
      for (line& l : *lines) l.value.store(done + 1, std::memory_order_relaxed);  // published by the store of turn
      turn.value.store(-++done, std::memory_order_release);                       // pairs with the load below
      while (!stop.stop_requested() && turn.value.load(std::memory_order_acquire) == -done) {  // pairs with `asked`
      }
    }
  });
  long asked = 0;
  for (auto _ : state) {
    turn.value.store(++asked, std::memory_order_release);           // pairs with the victim's loads
    while (turn.value.load(std::memory_order_acquire) != -asked) {  // pairs with the victim's store
    }
    const auto start = clock::now();
    long sum = 0;
    for (line& l : *lines) sum += l.value.load(std::memory_order_acquire);  // pairs with nothing: only the time counts
    benchmark::DoNotOptimize(sum);
    state.SetIterationTime(seconds(clock::now() - start));
    if (sum == 0) state.SkipWithError("nothing was written");
    turn.value.store(asked, std::memory_order_relaxed);  // lets the victim go on
  }
}
BENCHMARK(probe)->Name("cores/probe 4 lines")->UseManualTime();

// The wake of a thread that sleeps on a condition variable of another core: the cost for the waker, and the time until
// the woken thread runs.
void wake(benchmark::State& state) {
  const bool latency = state.range(0) == 1;
  std::mutex mutex;
  std::condition_variable changed;
  bool notified = false, stop = false;
  clock::time_point ran;
  std::atomic<bool> awake{false};
  std::jthread sleeper([&] {
    std::unique_lock lock(mutex);
    while (!stop) {
      changed.wait(lock, [&] { return notified; });
      ran = clock::now();
      notified = false;
      awake.store(true, std::memory_order_release);  // pairs with the waker's load
    }
  });
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const auto start = clock::now();
    {
      const std::lock_guard lock(mutex);
      notified = true;
      changed.notify_one();
    }
    const auto end = clock::now();
    while (!awake.exchange(false, std::memory_order_acquire)) cpu_relax();  // pairs with the sleeper's store
    state.SetIterationTime(seconds((latency ? ran : end) - start));
  }
  {
    const std::lock_guard lock(mutex);
    notified = stop = true;
    changed.notify_one();
  }
}
BENCHMARK(wake)->Name("cores/wake cost")->Arg(0)->UseManualTime()->Iterations(2000);
BENCHMARK(wake)->Name("cores/wake latency")->Arg(1)->UseManualTime()->Iterations(2000);

// A section of a few instructions under the lock of the shared queue, by so many threads.
spin_lock contended;  // NOLINT
long guarded = 0;     // NOLINT

void lock_contended(benchmark::State& state) {
  for (auto _ : state) {
    contended.lock();
    benchmark::DoNotOptimize(++guarded);
    contended.unlock();
  }
}
BENCHMARK(lock_contended)->Name("cores/spin_lock")->ThreadRange(1, 4)->UseRealTime();

// Between two rounds of a searcher.
void search_pause(benchmark::State& state) {
  for (auto _ : state)
    for (int i = 0; i < 64; ++i) cpu_relax();
}
BENCHMARK(search_pause)->Name("cores/pause between searches");

// The cost for a thief of a fork or a slot, while this number of other threads of the process run. A fence counts only
// if they did run just before: a thread that has lost its core does not have to be interrupted.
void fence(benchmark::State& state) {
  constexpr auto just_now = std::chrono::nanoseconds(400);
  std::vector<line> seen(static_cast<std::size_t>(state.range(0)));
  const auto time = [] { return clock::now().time_since_epoch().count(); };
  std::vector<std::jthread> others;
  for (line& l : seen)
    others.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) l.value.store(time(), std::memory_order_relaxed);  // hint
    });
  const auto all_run = [&] {
    return std::all_of(seen.begin(), seen.end(), [&](const line& l) {
      return time() - l.value.load(std::memory_order_relaxed) < just_now.count();  // hint
    });
  };
  for (auto _ : state) {
    clock::duration took{};
    do {
      for (const auto rest = clock::now() + std::chrono::microseconds(6); clock::now() < rest || !all_run();) {
      }
      const auto start = clock::now();
      heavy_fence();
      took = clock::now() - start;
    } while (took > std::chrono::microseconds(20));  // then this thread lost its core itself
    state.SetIterationTime(seconds(took));
  }
}
BENCHMARK(fence)->Name("cores/heavy fence")->DenseRange(0, 3)->UseManualTime()->Iterations(200);

void poll(benchmark::State& state) {
  event_loop loop(1);
  for (auto _ : state) {
    event_list ready;
    loop.poll(ready);
    benchmark::DoNotOptimize(ready.empty());
  }
}
BENCHMARK(poll)->Name("cores/poll of nothing");

}  // namespace
