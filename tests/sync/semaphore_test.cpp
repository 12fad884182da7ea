#include "support/crowd.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Semaphore : public WorkersTest {};
ULEXITE_TEST_WORKERS(Semaphore);

static_assert(counting_semaphore<7>::max() == 7 && binary_semaphore::max() == 1);
static_assert(counting_semaphore<>::max() == PTRDIFF_MAX);

template <class S>
std::ptrdiff_t take_all(S& semaphore) {
  std::ptrdiff_t taken = 0;
  while (semaphore.try_acquire()) ++taken;
  return taken;
}

TEST_P(Semaphore, LetsInAsManyAsThereArePermits) {
  counting_semaphore<> permits(3);
  std::atomic<int> inside{0}, most{0};
  const auto work = [&] {
    for (int i = 0; i < times(1000); ++i) {
      permits.acquire();
      const int now = ++inside;
      EXPECT_LE(now, 3);
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      if (i % 8 == 0) this_fiber::yield();
      --inside;
      permits.release();
    }
  };
  crowd(rt(), 9, 3, work).join();
  EXPECT_EQ(take_all(permits), 3);
  EXPECT_GE(most, 1);
}

TEST_P(Semaphore, ServesInTheOrderOfArrival) {
  counting_semaphore<> permits(0);
  std::atomic<int> last{-1}, served{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(spawn_until_it_waits(rt(), [&, i] {
      permits.acquire();
      last = i;
      ++served;
    }));
  EXPECT_EQ(served, 0);
  for (int i = 0; i < 8; ++i) {
    permits.release();
    wait_until([&] { return served == i + 1; });
    EXPECT_EQ(last, i);
  }
  for (auto& each : all) each.get();
}

TEST_P(Semaphore, NobodyTakesThePermitOfAWaiter) {
  binary_semaphore permit(0);
  for (int i = 0; i < times(100); ++i) {
    auto waiter = spawn_until_it_waits(rt(), [&] { permit.acquire(); });
    permit.release();
    EXPECT_FALSE(permit.try_acquire());
    waiter.get();
    EXPECT_FALSE(permit.try_acquire());
  }
}

TEST_P(Semaphore, AReleaseOfManyServesAsManyAndKeepsTheRest) {
  counting_semaphore<> permits(0);
  std::atomic<int> served{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(spawn_until_it_waits(rt(), [&] {
      permits.acquire();
      ++served;
    }));
  permits.release(0);
  permits.release(3);
  wait_until([&] { return served == 3; });
  wait_until_all_wait(rt());
  EXPECT_EQ(served, 3);
  permits.release(4);
  for (auto& each : all) each.get();
  EXPECT_EQ(take_all(permits), 2);
}

TEST_P(Semaphore, MisuseIsAUsageErrorAndChangesNothing) {
  EXPECT_THROW(counting_semaphore<>(-1), usage_error);
  EXPECT_THROW(counting_semaphore<4>(5), usage_error);
  EXPECT_THROW(counting_semaphore<0>(1), usage_error);
  counting_semaphore<4> permits(3);
  EXPECT_THROW(permits.release(-1), usage_error);
  EXPECT_THROW(permits.release(2), usage_error);
  EXPECT_THROW(permits.release(PTRDIFF_MAX), usage_error);
  EXPECT_EQ(take_all(permits), 3);
  auto waiter = spawn_until_it_waits(rt(), [&] { permits.acquire(); });
  EXPECT_THROW(permits.release(5), usage_error) << "with a waiter too";
  EXPECT_FALSE(waiter.done());
  permits.release(4);
  waiter.get();
  EXPECT_EQ(take_all(permits), 3);
  counting_semaphore<> most(PTRDIFF_MAX);
  EXPECT_THROW(most.release(), usage_error);
  try {
    permits.release(9);
    ADD_FAILURE();
  } catch (const usage_error& error) {
    EXPECT_NE(std::string(error.what()).find("9 to 0 permits of at most 4"), std::string::npos) << error.what();
  }
}

TEST_P(Semaphore, WaitsNoLongerThanAllowed) {
  auto check = [] {
    binary_semaphore permit(0);
    const auto start = ulexite::steady_clock::now();
    EXPECT_FALSE(permit.try_acquire_for(2ms));
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_FALSE(permit.try_acquire_until(ulexite::steady_clock::now() - 1s));
    EXPECT_FALSE(permit.try_acquire_for(-1s));
    permit.release();
    EXPECT_TRUE(permit.try_acquire_for(0s));
    permit.release();
    EXPECT_TRUE(permit.try_acquire_until(ulexite::steady_clock::time_point::max()));
    EXPECT_FALSE(permit.try_acquire());
  };
  run(check);
  check();
}

TEST_P(Semaphore, ACancelledAcquireTakesNothing) {
  binary_semaphore permit(0);
  expect_stop_ends(rt(), [&] { permit.acquire(); });
  expect_stop_ends(rt(), [&] { EXPECT_TRUE(permit.try_acquire_for(1h)); });
  permit.release();
  expect_stop_forbids(rt(), [&] { permit.acquire(); });
  expect_stop_forbids(rt(), [&] { EXPECT_TRUE(permit.try_acquire_until(ulexite::steady_clock::now() + 1h)); });
  EXPECT_TRUE(permit.try_acquire());
}

TEST_P(Semaphore, ThePermitGoesToTheNextWhenAWaiterLeaves) {
  binary_semaphore permit(0);
  auto first = spawn_until_it_waits(rt(), [&] { permit.acquire(); });
  auto second = spawn_until_it_waits(rt(), [&] { permit.acquire(); });
  first.request_stop();
  permit.release();  // the first may not have left the queue yet
  EXPECT_THROW(first.get(), operation_cancelled);
  second.get();
  EXPECT_FALSE(permit.try_acquire());
}

// In the queue nothing would wake the request, because a select that leaves it gives no permit.
TEST_P(Semaphore, ARequestForNothingNeverWaits) {
  run([] {
    counting_semaphore<> none(0);
    auto waiter = spawn([&] { none.acquire(); });
    wait_until_others_wait();
    none.acquire(0);
    EXPECT_TRUE(none.try_acquire(0));
    EXPECT_TRUE(none.try_acquire_for(0ms, 0));
    none.release();
    waiter.get();
  });
}

TEST_P(Semaphore, TimeOutsRaceWithReleasesAndLoseNothing) {
  counting_semaphore<> permits(0);
  std::atomic<long> taken{0};
  std::atomic<bool> stop{false};
  const auto take = [&](int me) {
    for (int k = 0; !stop; ++k)
      if (permits.try_acquire_for(std::chrono::microseconds((me * 7 + k) % 50))) ++taken;
  };
  crowd takers(rt(), 6, 2, take);
  const long released = times(4000);
  for (long i = 0; i < released; ++i) {
    permits.release();
    if (i % 3 == 0) this_fiber::yield();
  }
  stop = true;
  takers.join();
  EXPECT_EQ(taken + take_all(permits), released);
}

TEST_P(Semaphore, CancellationsRaceWithReleasesAndLoseNothing) {
  run([] {
    for (int i = 0; i < times(3000); ++i) {
      binary_semaphore permit(0);
      auto waiter = spawn([&] { permit.acquire(); });
      if (i % 2 == 0) this_fiber::yield();
      auto releaser = spawn([&] { permit.release(); });
      waiter.request_stop();
      bool taken = true;
      try {
        waiter.get();
      } catch (const operation_cancelled&) {
        taken = false;
      }
      releaser.get();
      EXPECT_NE(permit.try_acquire(), taken);
    }
  });
}

TEST_P(Semaphore, OrdersWhatIsDoneUnderIt) {
  binary_semaphore mine(1), yours(0);
  long turns = 0;  // not atomic
  const long rounds = times(2000);
  std::thread thread([&] {
    for (long i = 0; i < rounds; ++i) {
      mine.acquire();
      EXPECT_EQ(turns++, 2 * i);
      yours.release();
    }
  });
  run([&] {
    for (long i = 0; i < rounds; ++i) {
      yours.acquire();
      EXPECT_EQ(turns++, 2 * i + 1);
      mine.release();
    }
  });
  thread.join();
}

TEST_P(Semaphore, MayBeDestroyedAsSoonAsTheAcquireReturns) {
  run([] {
    for (int i = 0; i < times(5000); ++i) {
      auto permits = std::make_unique<counting_semaphore<>>(0);
      spawn([p = permits.get()] { p->release(); }).detach();
      if (i % 2 == 0) this_fiber::yield();
      if (i % 3 == 0) {
        while (!permits->try_acquire_for(1us)) {
        }
      } else {
        permits->acquire();
      }
    }
  });
}

}  // namespace
