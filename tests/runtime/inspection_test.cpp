// What an inspection of a runtime stops, and what it leaves alone.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/event.hpp>

#include <atomic>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Inspections : public RuntimeTest {};

// Others run on, also on the only worker, until that comes to the held one.
TEST_F(Inspections, HoldOnlyTheFibersThatTheyAreAt) {
  if (!detail::inspection::possible()) GTEST_SKIP() << "the kernel refuses membarrier";
  runtime& rt = make(1);
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<bool> over{false}, resumed{false};
  std::atomic<detail::agent*> waiter{nullptr};
  event go;
  auto waits = spawn_until_it_waits(rt, [&] {
    waiter = &detail::this_agent();
    go.wait();
    resumed = true;
  });
  auto busy = rt.spawn([&] {
    for (; !over; ++rounds) this_fiber::yield();
  });
  const auto run_on = [&] {
    const std::uint64_t before = rounds;
    wait_until([&] { return rounds > before + 1000; });
  };
  {
    detail::runtime_state& state = detail::state_of(rt);
    detail::inspection look(state, std::unique_lock(state.world.inspecting));
    look.hold(*waiter, 1);
    run_on();
    look.release();
    run_on();
    look.hold(*waiter, 1);
    go.set();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();  // the worker comes to it; sometimes later
    EXPECT_FALSE(resumed);
  }
  run_on();
  over = true;
  busy.join();
  waits.join();
}

}  // namespace
