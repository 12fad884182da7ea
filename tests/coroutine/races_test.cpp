// Wakes from plain threads and from another runtime, against stops, deadlines and time-outs. No value is lost or
// doubled.

#include "ways.hpp"

#include <numeric>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoRaces : public WorkersTest {};
ULEXITE_TEST_WORKERS(CoRaces);

// Lets a thread pass some time that differs from call to call.
void dawdle(int n) {
  for (int i = 0; i < (n * 37) % 200; ++i) detail::cpu_relax();
}

TEST_P(CoRaces, WakesFromPlainThreads) {
  const int count = times(2000);
  channel<int> there(0), back(1);
  auto echo = rt().spawn([&]() -> task<int> {
    int total = 0;
    while (const auto value = co_await co_receive(there)) {
      co_await co_send(back, *value);
      ++total;
    }
    co_return total;
  });
  std::thread outside([&] {
    for (int i = 0; i < count; ++i) {
      there.send(i);
      EXPECT_EQ(back.receive(), i);
    }
    there.close();
  });
  outside.join();
  EXPECT_EQ(echo.get(), count);
}

TEST_P(CoRaces, WakesFromAnotherRuntime) {
  runtime& other = make(2);
  channel<int> there, back;
  const int count = times(2000);
  auto echo = other.spawn([&]() -> task<> {
    while (const auto value = co_await co_receive(there)) co_await co_send(back, *value + 1);
    back.close();
  });
  rt().spawn([&]() -> task<> {
        for (int i = 0; i < count; ++i) {
          co_await co_send(there, i);
          EXPECT_EQ(co_await co_receive(back), i + 1);
        }
        there.close();
      })
      .get();
  echo.get();
}

// Two coroutines of different runtimes with one mutex and one condition variable.
TEST_P(CoRaces, LocksOfTwoRuntimes) {
  runtime& other = make(2);
  mutex guard;
  condition_variable changed;
  long number = 0;
  const long count = times(2000);
  const auto take_turns = [&](long parity) -> task<> {
    for (;;) {
      auto lock = co_await co_lock(guard);
      co_await co_wait(changed, lock, [&] { return number % 2 == parity || number >= count; });
      if (number >= count) break;
      ++number;
      changed.notify_all();
    }
    changed.notify_all();
  };
  auto one = rt().spawn([&] { return take_turns(0); });
  auto two = other.spawn([&] { return take_turns(1); });
  one.get();
  two.get();
  EXPECT_EQ(number, count);
}

TEST_P(CoRaces, AStopAgainstAReceiveTakesTheValueOrLeavesIt) {
  channel<int> values;
  int taken = 0, left = 0;
  for (int i = 0; i < times(500); ++i) {
    auto receives = rt().spawn([&]() -> task<int> { co_return *co_await co_receive(values); });
    std::thread sends([&, i] {
      dawdle(i);
      int value = 1;
      if (values.send_for(value, 1h) == channel_status::ok) return;
    });
    dawdle(i * 5);
    receives.request_stop();
    try {
      taken += receives.get();
    } catch (const operation_cancelled&) {
      left += *values.receive();
    }
    sends.join();
  }
  EXPECT_EQ(taken + left, times(500));
}

TEST_P(CoRaces, AStopAgainstASendSendsOrKeeps) {
  channel<int> values;
  int kept = 0, sent = 0;
  for (int i = 0; i < times(500); ++i) {
    auto sends = rt().spawn([&]() -> task<> { co_await co_send(values, 1); });
    std::thread receives([&, i] {
      dawdle(i);
      sent += *values.receive();
    });
    dawdle(i * 7);
    sends.request_stop();
    try {
      sends.get();
    } catch (const operation_cancelled&) {
      ++kept;
      values.send(0);
    }
    receives.join();
  }
  EXPECT_EQ(kept + sent, times(500));
}

TEST_P(CoRaces, AStopAgainstASelectOfThreeSources) {
  channel<int> values;
  counting_semaphore<> permits(0);
  auto_reset_event bell;
  std::atomic<int> got_values{0}, got_permits{0}, got_bells{0};
  int stopped = 0, sent = 0;
  const int rounds = times(500);
  for (int i = 0; i < rounds; ++i) {
    auto selects = rt().spawn([&]() -> task<> {
      co_await co_select(on_receive(values, [&](auto) { ++got_values; }), on_acquire(permits, [&] { ++got_permits; }),
                         on_set(bell, [&] { ++got_bells; }));
    });
    std::thread wakes([&, i] {
      dawdle(i);
      int value = 1;
      if (values.try_send(value) == channel_status::ok) ++sent;
      permits.release();
      bell.set();
    });
    dawdle(i * 3);
    selects.request_stop();
    try {
      selects.get();
    } catch (const operation_cancelled&) {
      ++stopped;
    }
    wakes.join();
    bell.reset();
  }
  int left = 0;
  while (permits.try_acquire()) ++left;
  EXPECT_EQ(got_values, sent);
  EXPECT_EQ(got_permits + left, rounds);
  EXPECT_EQ(got_values + got_permits + got_bells + stopped, rounds);
}

TEST_P(CoRaces, ATimeOutAgainstANotification) {
  counting_semaphore<> permits(0);
  std::atomic<int> taken{0};
  const int each = times(500);
  std::vector<join_handle<>> all;
  for (int i = 0; i < 6; ++i)
    all.push_back(rt().spawn([&, i]() -> task<> {
      for (int k = 0; k < each; ++k) {
        const auto time = std::chrono::microseconds((i * 13 + k) % 40);
        if (k % 3 == 0) {
          try {
            const deadline_scope limit(time);
            co_await co_acquire(permits);
            ++taken;
          } catch (const deadline_exceeded&) {
          }
        } else if (co_await co_try_acquire_for(permits, time)) {
          ++taken;
        }
      }
    }));
  int given = 0;
  for (; given < 3 * each; ++given) {
    permits.release();
    dawdle(given * 11);
  }
  for (auto& one : all) one.get();
  while (permits.try_acquire()) ++taken;
  EXPECT_EQ(taken, given);
}

TEST_P(CoRaces, AnInheritedDeadlineAgainstARendezvous) {
  channel<int> values;
  std::atomic<int> sent{0}, received{0};
  run([&] {
    for (int i = 0; i < times(300); ++i) {
      const deadline_scope limit(std::chrono::microseconds(i % 60));
      auto sends = spawn([&]() -> task<> {
        co_await co_send(values, 1);
        ++sent;
      });
      auto receives = spawn([&]() -> task<> {
        if (co_await co_receive(values)) ++received;
      });
      sends.join();
      receives.join();
    }
  });
  EXPECT_EQ(sent, received);
}

// Stops of coroutines that are about to start, run, wait or end.
TEST_P(CoRaces, AStopAtAnyPoint) {
  channel<int> values;
  std::atomic<int> alive{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < times(2000); ++i) {
    auto handle = rt().spawn([&, mine = lives(alive), i]() -> task<> {
      const lives here(alive);
      if (i % 2) co_await co_yield_now();
      if (i % 3) co_await co_sleep_for(1us);
      if (i % 5) (void)co_await co_receive(values);
    });
    dawdle(i);
    handle.request_stop();
    all.push_back(std::move(handle));
  }
  for (auto& each : all) {
    try {
      each.get();
    } catch (const operation_cancelled&) {
    }
  }
  EXPECT_EQ(alive, 0);
}

TEST_P(CoRaces, ACloseAgainstAllWhoWait) {
  for (int i = 0; i < times(300); ++i) {
    channel<int> values(static_cast<std::size_t>(i % 2));
    std::atomic<int> sent{0}, received{0};
    std::vector<join_handle<>> all;
    for (int k = 0; k < 3; ++k) {
      all.push_back(rt().spawn([&]() -> task<> {
        int value = 1;
        while (co_await co_send_for(values, value, 1h) == channel_status::ok) ++sent;
      }));
      all.push_back(rt().spawn([&]() -> task<> {
        while (co_await co_receive(values)) ++received;
      }));
    }
    dawdle(i * 17);
    values.close();
    for (auto& each : all) each.get();
    EXPECT_EQ(sent, received);
  }
}

// Locks are no cancellation points, so all who were asked to stop have had their turns.
TEST_P(CoRaces, SharedMutexesAgainstStopsAndTimers) {
  shared_mutex guard;
  long number = 0;
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(rt().spawn([&, i]() -> task<> {
      for (int k = 0; k < times(300); ++k) {
        if ((i + k) % 3 == 0) {
          const auto lock = co_await co_lock(guard);
          ++number;
        } else {
          const auto lock = co_await co_lock_shared(guard);
          if (k % 20 == 0) co_await co_yield_now();
        }
      }
    }));
  for (auto& each : all) each.request_stop();
  for (auto& each : all) {
    try {
      each.get();
    } catch (const operation_cancelled&) {
    }
  }
  EXPECT_GT(number, 0);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

}  // namespace
