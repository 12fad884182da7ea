// A fiber that is given a lock runs soon, however many others can run. Until it unlocks, nobody else has the lock.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/task_group.hpp>

#include <mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

struct semaphore_as_lock {
  binary_semaphore one{1};
  void lock() { one.acquire(); }
  void unlock() { one.release(); }
};

template <class Lock>
class HandOver : public RuntimeTest {
 protected:
  static constexpr int others = 100, waiters = 12;

  void SetUp() override {
    if (detail::migrating) GTEST_SKIP() << "the fibers have no order";
  }

  // Starts `others` that yield, and `waiters` that take the lock once, which the caller then has held for so long that
  // a mutex is handed over. Calls give(), which unlocks it. Returns the turns of the others from then until the last
  // waiter has the lock.
  template <class F>
  int turns_of_others(F give) {
    int turns = 0, last = 0;
    make(1).run([&] {
      bool ended = false;
      task_group all, yielding;
      guard_.lock();
      for (int i = 0; i < waiters; ++i)
        all.spawn([&] {
          const std::lock_guard lock(guard_);
          last = turns;
        });
      for (int i = 0; i < others; ++i)
        yielding.spawn([&] {
          while (!ended) {
            ++turns;
            this_fiber::yield();
          }
        });
      auto other = spawn([this] { go_.wait(); });
      while (turns < 2 * others) this_fiber::yield();
      for (const auto start = steady_clock::now(); steady_clock::now() - start < 2ms;) {
      }
      turns = 0;
      give();
      all.wait();
      ended = true;
      go_.set();
      other.join();
      yielding.wait();
    });
    return last;
  }

  Lock guard_;
  event go_;  // one fiber waits for it
};

using locks = testing::Types<mutex, shared_mutex, semaphore_as_lock>;
TYPED_TEST_SUITE(HandOver, locks);

TYPED_TEST(HandOver, DoesNotWaitForATurnOfTheRing) {
  EXPECT_LT(this->turns_of_others([this] { this->guard_.unlock(); }), this->others);
}

// The fiber that is woken second takes the place of the first, which was to run next.
TYPED_TEST(HandOver, NorIfAnotherFiberIsWokenThen) {
  EXPECT_LT(this->turns_of_others([this] {
    this->guard_.unlock();
    this->go_.set();
  }),
            this->others);
}

// They got it together, and so the last of them is the one that runs next.
TEST_F(RuntimeTest, ReadersThatAreLetInTogetherAllRunSoon) {
  if (detail::migrating) GTEST_SKIP() << "the fibers have no order";
  make(1).run([] {
    constexpr int others = 100;
    shared_mutex guard;
    guard.lock();
    int turns = 0, last = 0;
    bool ended = false;
    task_group readers, yielding;
    for (int i = 0; i < 5; ++i)
      readers.spawn([&] {
        guard.lock_shared();
        last = turns;
        guard.unlock_shared();
      });
    for (int i = 0; i < others; ++i)
      yielding.spawn([&] {
        while (!ended) {
          ++turns;
          this_fiber::yield();
        }
      });
    while (turns < 2 * others) this_fiber::yield();
    turns = 0;
    guard.unlock();
    readers.wait();
    EXPECT_LT(last, others / 2);
    ended = true;
    yielding.wait();
  });
}

}  // namespace
