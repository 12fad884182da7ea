// Bursts of work from outside, with idling between them, so that workers park and are woken all the time. Every burst
// must be done before the next one comes, and no wake-up may need a rescue.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

// Lets the workers fall asleep, or nearly: the interesting times are those around it.
void idle(detail::random& random) {
  switch (random.below(4)) {
    case 0: return;
    case 1:
      for (std::uint32_t i = random.below(3000); i > 0; --i) detail::cpu_relax();
      return;
    case 2: std::this_thread::yield(); return;
    default: std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
  }
}

void push_bursts(program& test, runtime& rt, std::uint64_t seed, std::atomic<bool>& stop) {
  detail::random random(seed);
  channel<int> there, back;
  auto echo = rt.spawn([&] {
    for (const int value : there) back.send(value);
  });
  while (!stop) {
    switch (random.below(4)) {
      case 0: {  // fibers
        wait_group group;
        const std::uint32_t count = 1 + random.below(8);
        group.add(static_cast<std::ptrdiff_t>(count));
        for (std::uint32_t i = 0; i < count; ++i)
          rt.spawn([&group, i] {
              if (i % 2 == 0) this_fiber::yield();
              group.done();
            }).detach();
        group.wait();
        break;
      }
      case 1:  // a wake-up each way
        there.send(1);
        test.check(back.receive() == 1, "another value came back");
        break;
      case 2:  // a fiber that fans out
        rt.spawn([count = random.below(20)] {
            task_group group;
            for (std::uint32_t i = 0; i < count; ++i) group.spawn([] {});
            group.wait();
          }).join();
        break;
      default:  // a timer
        rt.spawn([time = random.below(300)] { this_fiber::sleep_for(std::chrono::microseconds(time)); }).join();
    }
    test.moved();
    idle(random);
  }
  there.close();
  echo.join();
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_a_runtime_each([&](runtime& rt, detail::random& random) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> pushers;
    for (std::uint32_t i = 0, n = 1 + random.below(3); i < n; ++i)
      pushers.emplace_back([&, seed = random.next()] { push_bursts(test, rt, seed, stop); });
    std::this_thread::sleep_for(400ms);
    stop = true;
    for (auto& thread : pushers) thread.join();
  });
}
