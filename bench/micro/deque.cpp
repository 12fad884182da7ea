// The cost of the run queue for its owner and for a thief.

#include <ulexite/base/job.hpp>
#include <ulexite/runtime/queue/deque.hpp>

#include <atomic>
#include <memory>
#include <thread>

#include <benchmark/benchmark.h>

namespace {

using namespace ulexite::detail;
using ulexite::job;

using ring = deque<job, 1024, deque_order::first_in_first_out>;
using forks = deque<job, 1024, deque_order::last_in_first_out>;

constexpr auto pop_top = [](ring& from) { return from.pop_top(); };
constexpr auto pop_top_alone = [](ring& from) { return from.pop_top_alone(); };
constexpr auto pop_bottom = [](forks& from) { return from.pop_bottom(); };

template <class Queue, auto Take>
void push_and_take(benchmark::State& state) {
  const auto queue = std::make_unique<Queue>();
  job item;
  for (auto _ : state) {
    bool pushed = queue->push(item);
    benchmark::DoNotOptimize(pushed);
    benchmark::DoNotOptimize(Take(*queue));
  }
}
BENCHMARK(push_and_take<ring, pop_top>)->Name("ring/push+pop_top");
BENCHMARK(push_and_take<ring, pop_top_alone>)->Name("ring/push+pop_top_alone");
BENCHMARK(push_and_take<forks, pop_bottom>)->Name("forks/push+pop_bottom");

// Per item, of batches of 512 that the owner pushes and a thief takes half by half.
void steal_half(benchmark::State& state) {
  const auto from = std::make_unique<ring>(), to = std::make_unique<ring>();
  job item;
  for (auto _ : state) {
    for (int i = 0; i < 512; ++i) {
      bool pushed = from->push(item);
      benchmark::DoNotOptimize(pushed);
    }
    while (from->steal_half(*to)) {
    }
    while (to->pop_top()) {
    }
  }
  state.SetItemsProcessed(state.iterations() * 512);
}
BENCHMARK(steal_half);

// The owner pushes and takes while another thread steals what it can.
void with_a_thief(benchmark::State& state) {
  const auto queue = std::make_unique<ring>();
  std::atomic<bool> over{false};
  std::thread thief([&] {
    const auto loot = std::make_unique<ring>();
    while (!over.load(std::memory_order_relaxed)) {  // the join orders the rest
      benchmark::DoNotOptimize(queue->steal_half(*loot));
      while (loot->pop_top()) {
      }
    }
  });
  job item;
  for (auto _ : state) {
    for (int i = 0; i < 8; ++i) {
      bool pushed = queue->push(item);
      benchmark::DoNotOptimize(pushed);
    }
    while (queue->pop_top()) {
    }
  }
  over.store(true, std::memory_order_relaxed);  // the join orders the rest
  thief.join();
  state.SetItemsProcessed(state.iterations() * 8);
}
BENCHMARK(with_a_thief)->UseRealTime();

}  // namespace
