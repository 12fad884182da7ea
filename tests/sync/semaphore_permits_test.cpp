#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <memory>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SemaphorePermits : public WorkersTest {};
ULEXITE_TEST_WORKERS(SemaphorePermits);

constinit counting_semaphore<> made_at_compile_time(2);

TEST_P(SemaphorePermits, AreTakenAllAtOnce) {
  counting_semaphore<> permits(3);
  EXPECT_FALSE(permits.try_acquire(4));
  EXPECT_TRUE(permits.try_acquire(3));
  EXPECT_TRUE(permits.try_acquire(0));
  EXPECT_FALSE(permits.try_acquire_for(1ms, 2));
  auto waiter = spawn_until_it_waits(rt(), [&] { permits.acquire(5); });
  permits.release(4);
  EXPECT_FALSE(waiter.done());
  permits.release();
  waiter.get();
  EXPECT_FALSE(permits.try_acquire());
  EXPECT_TRUE(made_at_compile_time.try_acquire(2));
  made_at_compile_time.release(2);
}

// The later one could be served now, but that would starve the earlier one.
TEST_P(SemaphorePermits, NoLaterRequestPassesAWiderOne) {
  counting_semaphore<> permits(1);
  std::atomic<int> order{0};
  int wide_came = 0, narrow_came = 0;
  auto wide = spawn_until_it_waits(rt(), [&] {
    permits.acquire(2);
    wide_came = ++order;
    permits.release(2);
  });
  EXPECT_FALSE(permits.try_acquire());
  auto narrow = spawn_until_it_waits(rt(), [&] {
    permits.acquire();
    narrow_came = ++order;
  });
  EXPECT_FALSE(narrow.done());
  permits.release();
  wide.get();
  narrow.get();
  EXPECT_EQ(wide_came, 1);
  EXPECT_EQ(narrow_came, 2);
}

TEST_P(SemaphorePermits, AWideRequestThatGivesUpLetsThoseBehindItPass) {
  for (const bool by_time : {true, false}) {
    counting_semaphore<> permits(1);
    auto wide = rt().spawn([&] {
      if (by_time) EXPECT_FALSE(permits.try_acquire_for(20ms, 2));
      if (!by_time) permits.acquire(2);
    });
    wait_until_all_wait(rt());
    std::vector<join_handle<>> narrow;
    for (int i = 0; i < 3; ++i)
      narrow.push_back(rt().spawn([&] {
        permits.acquire();
        permits.release();
      }));
    if (!by_time) {
      wait_until_all_wait(rt());
      wide.request_stop();
      EXPECT_THROW(wide.get(), operation_cancelled);
    }
    for (auto& each : narrow) each.get();
    if (by_time) wide.get();
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire());
  }
}

TEST_P(SemaphorePermits, AreCountedWhenManyWaitForDifferentNumbers) {
  counting_semaphore<> permits(7);
  std::atomic<std::ptrdiff_t> inside{0};
  const auto work = [&](std::ptrdiff_t n) {
    for (int i = 0; i < times(300); ++i) {
      const semaphore_permit mine(permits, n);
      EXPECT_LE(inside += n, 7);
      if (i % 4 == 0) this_fiber::yield();
      inside -= n;
    }
  };
  std::vector<join_handle<>> all;
  std::thread on_thread(work, 3);
  for (std::ptrdiff_t n = 1; n <= 7; ++n) all.push_back(rt().spawn([&, n] { work(n); }));
  for (auto& each : all) each.get();
  on_thread.join();
  EXPECT_TRUE(permits.try_acquire(7));
}

TEST_P(SemaphorePermits, RefuseNumbersThatCannotBe) {
  counting_semaphore<4> permits(4);
  EXPECT_THROW(permits.acquire(-1), usage_error);
  EXPECT_THROW(permits.acquire(5), usage_error);
  EXPECT_THROW((void)permits.try_acquire(5), usage_error);
  EXPECT_THROW((void)permits.try_acquire_for(1ms, -3), usage_error);
  EXPECT_TRUE(permits.try_acquire(4));
}

TEST_P(SemaphorePermits, AnOwnerGivesThemBack) {
  counting_semaphore<> permits(3);
  {
    const semaphore_permit one(permits);
    semaphore_permit two(permits, 2);
    EXPECT_TRUE(two);
    EXPECT_EQ(two.count(), 2);
    EXPECT_FALSE(permits.try_acquire());
    semaphore_permit refused(permits, std::try_to_lock);
    EXPECT_FALSE(refused);
    semaphore_permit moved = std::move(two);
    EXPECT_FALSE(two);
    moved.release();
    EXPECT_FALSE(moved);
    refused = semaphore_permit(permits, std::try_to_lock, 2);
    EXPECT_EQ(refused.count(), 2);
    refused = semaphore_permit<PTRDIFF_MAX>();
    EXPECT_TRUE(permits.try_acquire(2));
    const semaphore_permit adopted(permits, std::adopt_lock, 2);
  }
  EXPECT_TRUE(permits.try_acquire(3));
  semaphore_permit forgotten(permits, std::adopt_lock, 3);
  EXPECT_EQ(forgotten.forget(), 3);
  EXPECT_FALSE(permits.try_acquire());
}

TEST_P(SemaphorePermits, AnOwnerOfNoneIsFalse) {
  counting_semaphore<> permits(1);
  EXPECT_FALSE(semaphore_permit(permits, 0));
  EXPECT_FALSE(semaphore_permit(permits, std::try_to_lock, 0));
  EXPECT_FALSE(semaphore_permit(permits, std::adopt_lock, 0));
  EXPECT_TRUE(semaphore_permit(permits));
  EXPECT_TRUE(permits.try_acquire());
}

TEST_P(SemaphorePermits, AnOwnerRefusesNumbersThatCannotBe) {
  counting_semaphore<4> permits(4);
  EXPECT_THROW((void)semaphore_permit(permits, -1), usage_error);
  EXPECT_THROW((void)semaphore_permit(permits, std::try_to_lock, -1), usage_error);
  EXPECT_THROW((void)semaphore_permit(permits, std::adopt_lock, 5), usage_error);
  try {
    const semaphore_permit none(permits, std::adopt_lock, -17);
    FAIL();
  } catch (const usage_error& refused) {
    EXPECT_NE(std::string(refused.what()).find("-17"), std::string::npos) << refused.what();
  }
  EXPECT_TRUE(permits.try_acquire(4));
}

}  // namespace
