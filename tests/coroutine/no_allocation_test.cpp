// Waits of coroutines that must not allocate, once they are warm: their places are in the frames.
// allocation_test.cpp replaces operator new.

#include "../sync/allocation_fixture.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoNoAllocation : public NoAllocation {
 protected:
  static constexpr int rounds = 2000;

  // Two coroutines, left(n) and right(n), do n rounds in step. After some warm-up they allocate no more than their own
  // frames.
  template <class L, class R>
  void expect_frames_only(L left, R right) {
    run([&] {
      start_all_workers();
      std::atomic<int> ready{0};
      ulexite::event measure;
      task_group all;
      const auto both = [&](auto& side) -> task<> {
        co_await side(rounds);
        ++ready;
        co_await co_wait(measure);
        co_await side(rounds);
      };
      all.spawn([&] { return both(left); });
      all.spawn([&] { return both(right); });
      wait_until([&] { return ready == 2; });
      const long before = allocations;
      measure.set();
      all.wait();
      EXPECT_LE(allocations - before, 2) << "the frames of left and right";
    });
  }
};
ULEXITE_TEST_WORKERS(CoNoAllocation);

TEST_P(CoNoAllocation, InARendezvous) {
  channel<int> values;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) co_await co_send(values, i);
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) EXPECT_EQ(co_await co_receive(values), i);
      });
}

TEST_P(CoNoAllocation, InASelect) {
  channel<int> there, back;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          co_await co_select(on_send(there, i), on_receive(back, [](auto) { ADD_FAILURE(); }));
          EXPECT_EQ(co_await co_receive(back), i);
        }
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          EXPECT_EQ(co_await co_receive(there), i);
          co_await co_send(back, i);
        }
      });
}

TEST_P(CoNoAllocation, InLocks) {
  mutex guard;
  shared_mutex shared;
  const auto lock_often = [&](int n) -> task<> {
    for (int i = 0; i < n; ++i) {
      {
        const auto lock = co_await co_lock(guard);
        if (i % 8 == 0) co_await co_yield_now();
      }
      if (i % 2) {
        const auto lock = co_await co_lock(shared);
      } else {
        const auto lock = co_await co_lock_shared(shared);
      }
    }
  };
  expect_frames_only(lock_often, lock_often);
}

TEST_P(CoNoAllocation, InAConditionVariable) {
  mutex guard;
  condition_variable changed;
  bool turn = false;
  const auto take_turns = [&](bool mine) {
    return [&, mine](int n) -> task<> {
      for (int i = 0; i < n; ++i) {
        auto lock = co_await co_lock(guard);
        while (turn != mine) co_await co_wait(changed, lock);
        turn = !mine;
        changed.notify_one();
      }
    };
  };
  expect_frames_only(take_turns(true), take_turns(false));
}

TEST_P(CoNoAllocation, InWhatCounts) {
  counting_semaphore<> permits(0);
  auto_reset_event taken;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          permits.release();
          co_await co_wait(taken);
        }
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          co_await co_acquire(permits);
          taken.set();
        }
      });
}

}  // namespace
