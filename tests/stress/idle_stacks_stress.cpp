// Fibers that were deep in calls wait for about as long as the monitor lets them: it trims their stacks while they are
// woken. What a fiber has on its stack must stay as it is.

#include "stress/stress.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/sync/task_group.hpp>

#include <alloca.h>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

// Uses up to 64 KiB of stack, and waits somewhere on the way.
[[gnu::noinline]] void use_stack(program& test, detail::random& random, int depth) {
  const std::size_t size = 1 + random.below(16 * 1024);
  auto* const room = static_cast<volatile std::uint32_t*>(alloca(size * sizeof(std::uint32_t)));
  const std::uint32_t first = static_cast<std::uint32_t>(random.next());
  for (std::size_t i = 0; i < size; i += 64) room[i] = first + static_cast<std::uint32_t>(i);
  if (depth > 0 && random.below(2) == 0) use_stack(test, random, depth - 1);
  switch (random.below(8)) {
    case 0: this_fiber::yield(); break;
    case 1: block_in_place([&] { std::this_thread::sleep_for(std::chrono::microseconds(random.below(1000))); }); break;
    default: this_fiber::sleep_for(std::chrono::microseconds(random.below(12'000)));
  }
  if (depth > 0 && random.below(2) == 0) use_stack(test, random, depth - 1);
  for (std::size_t i = 0; i < size; i += 64)
    test.check(room[i] == first + static_cast<std::uint32_t>(i), "a fiber's stack has changed",
               static_cast<long long>(i));
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  std::uint64_t trimmed = 0;
  while (test.another_round()) {
    detail::random random = test.random();
    runtime rt({.threads = test.threads, .stack_size = 512 * 1024, .trim_stacks_after = 1ms});
    test.show(&rt);
    rt.run([&] {
      task_group users;
      for (int i = 0; i < fibers(300); ++i)
        users.spawn([&test, seed = random.next()] {
          detail::random own(seed);
          for (int turn = 0; turn < 20; ++turn) use_stack(test, own, 3);
          test.moved();
        });
      users.wait();
    });
    trimmed += rt.metrics().stack_bytes_trimmed;
    test.show(nullptr);
    rt.shutdown(shutdown_mode::drain);
    test.check_metrics(rt, true);
  }
  test.check(trimmed > 0 || !detail::inspection::possible(), "nothing was trimmed");
  return test.report();
}
