// Selects over events, semaphores and futures.

#include "support/waiting.hpp"

#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <functional>
#include <memory>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SelectSources : public WorkersTest {};
ULEXITE_TEST_WORKERS(SelectSources);

struct sources {
  ulexite::event event;
  auto_reset_event pulse;
  counting_semaphore<> permits{0};
  promise<int> value;
  future<int> coming = value.get_future();
  channel<int> numbers;

  std::size_t choose() {
    return select(on_set(event), on_set(pulse), on_acquire(permits), on_ready(coming), on_receive(numbers));
  }
  void come(std::size_t which) {
    switch (which) {
      case 0: event.set(); break;
      case 1: pulse.set(); break;
      case 2: permits.release(); break;
      case 3: value.set_value(7); break;
      default: numbers.close();
    }
  }
};

TEST_P(SelectSources, AreTakenWhenTheyAreReady) {
  const auto check = [] {
    for (std::size_t which = 0; which < 5; ++which) {
      sources all;
      all.come(which);
      EXPECT_EQ(all.choose(), which);
      EXPECT_FALSE(all.pulse.try_wait() || all.permits.try_acquire());
      EXPECT_EQ(all.event.is_set(), which == 0);
    }
  };
  run(check);
  check();
}

TEST_P(SelectSources, EndAWait) {
  for (std::size_t which = 0; which < 5; ++which) {
    sources all;
    auto waiter = spawn_until_it_waits(rt(), [&] { return all.choose(); });
    EXPECT_FALSE(waiter.done());
    all.come(which);
    EXPECT_EQ(waiter.get(), which);
    EXPECT_FALSE(all.pulse.try_wait() || all.permits.try_acquire());
    std::size_t chosen = 9;
    std::thread on_thread([&] { chosen = all.choose(); });  // an event and a future stay ready
    std::this_thread::sleep_for(1ms);
    if (which == 1 || which == 2) all.come(which);
    on_thread.join();
    EXPECT_EQ(chosen, which);
    if (which == 3) EXPECT_EQ(all.coming.get(), 7);
  }
}

TEST_P(SelectSources, CallTheirHandlers) {
  run([] {
    ulexite::event event(true);
    auto_reset_event pulse(true);
    counting_semaphore<3> permits(1);
    promise<void> value;
    const shared_future<void> coming = value.get_future().share();
    value.set_value();
    int sum = 0;
    select(on_set(event, [&] { sum += 1; }));
    select(on_set(pulse, [&] { sum += 10; }));
    select(on_acquire(permits, [&] {
      const semaphore_permit mine(permits, std::adopt_lock);
      sum += 100;
    }));
    select(on_ready(coming, [&] { sum += 1000; }));
    EXPECT_EQ(sum, 1111);
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_EQ(select(on_acquire(permits), on_set(pulse), otherwise()), 2U);
    EXPECT_EQ(select(on_acquire(permits), when(false, on_set(event)), after(1ms)), 2U);
    EXPECT_THROW((void)on_ready(future<int>()), std::future_error);
  });
}

TEST_P(SelectSources, MayStandTwiceInOneSelect) {
  ulexite::event event;
  counting_semaphore<> permits(0);
  auto waiter = spawn_until_it_waits(
      rt(), [&] { return select(on_set(event), on_acquire(permits), on_set(event), on_acquire(permits)); });
  permits.release();
  EXPECT_EQ(waiter.get() % 2, 1U);
  EXPECT_FALSE(permits.try_acquire());
}

TEST_P(SelectSources, AreLeftAsTheyWereByACancellationOrAnotherCase) {
  sources all;
  expect_stop_ends(rt(), [&] { (void)all.choose(); });
  EXPECT_EQ(run([&] { return select(on_set(all.pulse), on_acquire(all.permits), after(1ms)); }), 2U);
  all.pulse.set();
  all.permits.release();
  EXPECT_TRUE(all.pulse.try_wait());
  EXPECT_TRUE(all.permits.try_acquire());
}

// Behind the select is another waiter for one permit, and before it a waiter for many.
TEST_P(SelectSources, ASelectThatLeavesTheQueueOfASemaphoreHoldsNobodyUp) {
  counting_semaphore<> permits(0);
  auto_reset_event pulse;
  auto wide = spawn_until_it_waits(rt(), [&] { permits.acquire(2); });
  auto selecting = spawn_until_it_waits(rt(), [&] { return select(on_acquire(permits), on_set(pulse)); });
  auto last = spawn_until_it_waits(rt(), [&] { permits.acquire(); });
  pulse.set();
  EXPECT_EQ(selecting.get(), 1U);
  permits.release();
  wide.request_stop();
  EXPECT_THROW(wide.get(), operation_cancelled);
  last.get();
  EXPECT_FALSE(permits.try_acquire());
}

// Permits go round between selects over two semaphores, and plain acquires: none is lost, none appears.
TEST_P(SelectSources, KeepTheNumberOfPermits) {
  counting_semaphore<> left(3), right(0);
  const auto work = [&](int me) {
    for (int i = 0; i < times(500); ++i) {
      if ((i + me) % 5 == 0) {
        if (left.try_acquire_for(10us)) right.release();
        continue;
      }
      select(on_acquire(left, [&] { right.release(); }), on_acquire(right, [&] { left.release(); }),
             when(i % 3 == 0, after(20us)));
    }
  };
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i) all.push_back(rt().spawn([&, i] { work(i); }));
  std::thread on_thread(work, 9);
  for (auto& each : all) each.get();
  on_thread.join();
  int permits = 0;
  while (left.try_acquire() || right.try_acquire()) ++permits;
  EXPECT_EQ(permits, 3);
}

TEST_P(SelectSources, AnEventMayBeDestroyedAfterTheSelect) {
  run([&] {
    for (int i = 0; i < times(300); ++i) {
      auto event = std::make_unique<ulexite::event>();
      channel<int> never;
      auto setter = spawn([&here = *event] { here.set(); });
      select(on_receive(never), on_set(*event));
      event.reset();
      setter.get();
    }
  });
}

}  // namespace
