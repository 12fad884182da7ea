// What a runtime costs while its fibers wait.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/sync/task_group.hpp>

#include <ctime>

#include <sys/resource.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Idle : public WorkersTest {};
ULEXITE_TEST_WORKERS(Idle);

double processor_seconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A thief that believed it would pay for a heavy fence, and find nothing.
TEST_F(RuntimeTest, AnEmptySlotIsNotWorthARaid) {
  make(2).run([] {
    for (const auto& worker : detail::this_scheduler()->runtime().schedulers)
      EXPECT_FALSE(detail::scheduler::is_stalled(*worker));
  });
}

// An idle runtime costs nothing: with a sleeping fiber, far from any event, over a second less than one hundredth.
TEST_P(Idle, CostsNothing) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's own threads cost something";
  run([] {
    task_group all;
    for (int i = 0; i < 100; ++i) all.spawn([] { this_fiber::yield(); });
    all.wait();
  });
  auto waiting = rt().spawn([] { this_fiber::sleep_for(1h); });
  run([] { this_fiber::sleep_for(100ms); });  // until the monitor sleeps too
  // Other work of the machine, such as a preempted virtual processor, can only add to the counted time. So one time
  // that was cheap tells that idling is.
  wait_until([&] {
    const double before = processor_seconds();
    run([] { this_fiber::sleep_for(300ms); });
    return processor_seconds() - before < 0.003;
  });
  waiting.request_stop();
  waiting.join();
}

// It does not tick between two far events. The ticks of all this time would be 60.
TEST_F(RuntimeTest, TheMonitorSleepsWhileAllWorkersDo) {
  const auto switches = [] {
    rusage use;
    ::getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw;
  };
  runtime& rt = make(2);
  wait_until([&] {  // on a busy machine a worker may take long to fall asleep
    const long before = switches();
    rt.run([] {
      for (int i = 0; i < 3; ++i) this_fiber::sleep_for(200ms);
    });
    return switches() - before < 40;
  });
}

}  // namespace
