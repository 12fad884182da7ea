// The cost of a switch. A round trip is two switches.

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/fiber/switch.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace ulexite::detail;

context here, there;
volatile double number = 3;  // to set floating-point flags with, if asked to
bool floating = false;

void bounce(switch_thread& thread) {
  for (;;) {
    if (floating) number = 1 / number + 0.1;
    switch_context(there, here, thread);
  }
}

void round_trip(benchmark::State& state) {
  floating = state.range(0) != 0;
  switch_thread thread;
  stack_pool& pool = stack_pool::of_size(64 * 1024);
  stack* const used = pool.take();
  start_context(here, *used, 0, bounce, thread);
  for (auto _ : state) {
    if (floating) number = 1 / number + 0.1;
    switch_context(here, there, thread);
  }
  forget_context(*used);
  pool.give(used);
}
BENCHMARK(round_trip)->ArgName("floating")->Arg(0)->Arg(1);

void start(benchmark::State& state) {
  switch_thread thread;
  stack_pool& pool = stack_pool::of_size(64 * 1024);
  stack* const used = pool.take();
  for (auto _ : state) {
    start_context(
        here, *used, 0,
        [](switch_thread& arrived) {
          context ended;
          switch_context(ended, here, arrived, departure::final);
        },
        thread);
  }
  forget_context(*used);
  pool.give(used);
}
BENCHMARK(start);

}  // namespace
