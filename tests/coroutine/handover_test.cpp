// tests/sync/handover_test.cpp for coroutines: one that is given a lock runs soon, however many others can run.

#include "support/runtime_fixture.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

template <class Mutex>
struct lockable : Mutex {
  task<> use(int& last, const int& turns) {
    const auto lock = co_await co_lock(static_cast<Mutex&>(*this));
    last = turns;
  }
};
struct permit : binary_semaphore {
  permit() : binary_semaphore(1) {}
  void lock() { acquire(); }
  void unlock() { release(); }
  task<> use(int& last, const int& turns) {
    co_await co_acquire(static_cast<binary_semaphore&>(*this));
    last = turns;
    release();
  }
};

template <class Lock>
class CoHandOver : public RuntimeTest {
 protected:
  static constexpr int others = 100, waiters = 12;

  void SetUp() override {
    if (detail::migrating) GTEST_SKIP() << "the fibers have no order";
  }

  // Starts `others` that yield, and `waiters` that take the lock once, which the caller then has held for so long that
  // a mutex is handed over. Unlocks it. Returns the turns of the others from then until the last waiter has the lock.
  int turns_of_others() {
    int turns = 0, last = 0;
    make(1).run([&] {
      Lock guard;
      bool ended = false;
      task_group all, yielding;
      guard.lock();
      for (int i = 0; i < waiters; ++i) all.spawn([&] { return guard.use(last, turns); });
      for (int i = 0; i < others; ++i)
        yielding.spawn([&]() -> task<> {
          while (!ended) {
            ++turns;
            co_await co_yield_now();
          }
        });
      while (turns < 2 * others) this_fiber::yield();
      for (const auto start = steady_clock::now(); steady_clock::now() - start < 2ms;) {
      }
      turns = 0;
      guard.unlock();
      all.wait();
      ended = true;
      yielding.wait();
    });
    return last;
  }
};

using locks = testing::Types<lockable<mutex>, lockable<shared_mutex>, permit>;
TYPED_TEST_SUITE(CoHandOver, locks);

TYPED_TEST(CoHandOver, DoesNotWaitForATurnOfTheRing) { EXPECT_LT(this->turns_of_others(), this->others); }

}  // namespace
