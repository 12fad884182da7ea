// The cost of a stack: taken and returned warm; made, touched and trimmed.

#include <ulexite/fiber/stack_pool.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace ulexite::detail;

void take_and_give(benchmark::State& state) {
  stack_pool& pool = stack_pool::of_size(64 * 1024);
  for (auto _ : state) {
    stack* taken = pool.take();
    benchmark::DoNotOptimize(taken);
    pool.give(taken);
  }
}
BENCHMARK(take_and_give);

// Per stack, of `count` together: taken, the top page written, returned, trimmed.
void take_touch_give_trim(benchmark::State& state) {
  stack_pool& pool = stack_pool::of_size(64 * 1024);
  const auto count = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    stack* all = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      stack* const taken = pool.take();
      taken->high[-1] = 1;
      taken->next = all;
      all = taken;
    }
    pool.give(all);
    pool.trim(true);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(take_touch_give_trim)->ArgName("count")->Arg(1000)->Arg(20000)->Unit(benchmark::kMillisecond);

}  // namespace
