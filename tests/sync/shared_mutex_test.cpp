#include "support/crowd.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/shared_mutex.hpp>

#include <mutex>
#include <shared_mutex>
#include <thread>

// What it has in common with others is in locks_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

class SharedMutex : public WorkersTest {};
ULEXITE_TEST_WORKERS(SharedMutex);

TEST_P(SharedMutex, WritersAreAloneAndReadersSeeNoneAtWork) {
  ulexite::shared_mutex guard;
  long left = 0, right = 0;  // not atomic
  const auto write = [&] {
    for (int i = 0; i < times(800); ++i) {
      const std::unique_lock lock(guard);
      ++left;
      if (i % 16 == 0) this_fiber::yield();
      ++right;
    }
  };
  const auto read = [&] {
    for (int i = 0; i < times(800); ++i) {
      const std::shared_lock lock(guard);
      const long seen = left;
      if (i % 16 == 0) this_fiber::yield();
      EXPECT_EQ(seen, right);
    }
  };
  crowd all(rt(), 3, 1, write);
  all.add(6, 1, read);
  all.join();
  EXPECT_EQ(left, 4L * times(800));
}

TEST_P(SharedMutex, ReadersHoldItTogether) {
  ulexite::shared_mutex guard;
  std::atomic<int> inside{0};
  const auto read = [&] {
    const std::shared_lock lock(guard);
    ++inside;
    wait_until([&] { return inside == 6; });
  };
  crowd(rt(), 4, 2, read).join();
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(SharedMutex, TryLockNeverWaits) {
  run([] {
    ulexite::shared_mutex guard;
    EXPECT_TRUE(guard.try_lock());
    EXPECT_FALSE(guard.try_lock());
    EXPECT_FALSE(guard.try_lock_shared());
    spawn([&] {
      EXPECT_FALSE(guard.try_lock());
      EXPECT_FALSE(guard.try_lock_shared());
    }).get();
    guard.unlock();
    EXPECT_TRUE(guard.try_lock_shared());
    EXPECT_TRUE(guard.try_lock_shared());
    EXPECT_FALSE(guard.try_lock());
    guard.unlock_shared();
    EXPECT_FALSE(guard.try_lock());
    guard.unlock_shared();
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

// Callers get it in the order of their arrival, consecutive readers together: r r | W | r r | W | r.
TEST_P(SharedMutex, LetsInInTheOrderOfArrival) {
  ulexite::shared_mutex guard;
  std::atomic<int> entered{0};
  std::vector<join_handle<>> all;
  std::atomic<bool> go[5] = {};
  const auto hold = [&](int group, bool writer) {
    writer ? guard.lock() : guard.lock_shared();
    ++entered;
    wait_until([&] { return go[group].load(); });
    writer ? guard.unlock() : guard.unlock_shared();
  };
  guard.lock();
  const std::pair<int, bool> comers[] = {{0, false}, {0, false}, {1, true}, {2, false},
                                         {2, false}, {3, true},  {4, false}};
  for (const auto& [group, writer] : comers)
    all.push_back(spawn_until_it_waits(rt(), [&hold, group, writer] { hold(group, writer); }));
  EXPECT_EQ(entered, 0);
  guard.unlock();
  int expected = 0;
  for (int group = 0; group < 5; ++group) {
    expected += group % 2 == 0 && group != 4 ? 2 : 1;
    wait_until([&] { return entered == expected; });
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    EXPECT_EQ(entered, expected) << "nobody of the next group";
    go[group] = true;
  }
  for (auto& each : all) each.get();
}

TEST_P(SharedMutex, AReaderQueuesBehindAWaitingWriter) {
  ulexite::shared_mutex guard;
  guard.lock_shared();
  std::atomic<bool> written{false};
  auto writer = spawn_until_it_waits(rt(), [&] {
    guard.lock();
    written = true;
    guard.unlock();
  });
  EXPECT_FALSE(guard.try_lock_shared());
  auto reader = spawn_until_it_waits(rt(), [&] {
    guard.lock_shared();
    EXPECT_TRUE(written);
    guard.unlock_shared();
  });
  EXPECT_FALSE(reader.done());
  EXPECT_FALSE(guard.try_lock_shared_for(1us));
  EXPECT_FALSE(writer.done());
  guard.unlock_shared();
  writer.get();
  reader.get();
}

TEST_P(SharedMutex, AWriterThatGivesUpLetsTheReadersBehindItIn) {
  ulexite::shared_mutex guard;
  guard.lock_shared();
  std::atomic<int> readers{0};
  auto writer = rt().spawn([&] { return guard.try_lock_for(5ms); });
  while (!writer.done() && guard.try_lock_shared()) guard.unlock_shared();  // until it waits
  std::vector<join_handle<>> all;
  for (int i = 0; i < 3; ++i)
    all.push_back(rt().spawn([&] {
      guard.lock_shared();
      ++readers;
      guard.unlock_shared();
    }));
  wait_until([&] { return readers == 3; });
  EXPECT_FALSE(writer.get());
  for (auto& each : all) each.get();
  guard.unlock_shared();
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

// The holder takes it again immediately; the others still get it.
TEST_P(SharedMutex, NeitherReadersNorWritersStarve) {
  for (const bool writer : {true, false})
    run([writer] {
      ulexite::shared_mutex guard;
      std::atomic<bool> got{false};
      std::vector<join_handle<>> greedy;
      for (int i = 0; i < 3; ++i)
        greedy.push_back(spawn([&] {
          while (!got) {
            writer ? guard.lock_shared() : guard.lock();
            this_fiber::yield();
            writer ? guard.unlock_shared() : guard.unlock();
          }
        }));
      for (int i = 0; i < 10; ++i) {
        writer ? guard.lock() : guard.lock_shared();
        this_fiber::yield();
        writer ? guard.unlock() : guard.unlock_shared();
      }
      got = true;
      for (auto& each : greedy) each.get();
    });
}

TEST_P(SharedMutex, MisuseOfItsSharedSideIsAUsageErrorAndChangesNothing) {
  run([] {
    ulexite::shared_mutex guard;
    EXPECT_THROW(guard.unlock_shared(), usage_error);
    guard.lock();
    EXPECT_THROW(guard.lock_shared(), usage_error);
    EXPECT_THROW((void)guard.try_lock_shared_until(ulexite::steady_clock::now()), usage_error);
    EXPECT_THROW(guard.unlock_shared(), usage_error);
    spawn([&] { EXPECT_FALSE(guard.try_lock_shared()); }).get();
    guard.unlock();
    guard.lock_shared();
    EXPECT_THROW(guard.unlock(), usage_error);
    spawn([&] { EXPECT_FALSE(guard.try_lock()); }).get();
    guard.unlock_shared();
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

TEST_P(SharedMutex, ReadersWaitNoLongerThanAllowed) {
  ulexite::shared_mutex guard;
  const auto check = [&] {
    const auto start = ulexite::steady_clock::now();
    EXPECT_FALSE(guard.try_lock_shared_for(2ms));
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_FALSE(guard.try_lock_shared_for(1ms));
    EXPECT_FALSE(guard.try_lock_shared_until(ulexite::steady_clock::now()));
  };
  const std::unique_lock held(guard);
  run(check);
  std::thread(check).join();
  ulexite::shared_mutex free;
  EXPECT_TRUE(free.try_lock_shared_until(ulexite::steady_clock::time_point::max()));
  EXPECT_TRUE(free.try_lock_shared_for(-1s));
  free.unlock_shared();
  free.unlock_shared();
}

TEST_P(SharedMutex, WorksWithStdsLocks) {
  run([] {
    ulexite::shared_mutex one, two;
    long count = 0;  // not atomic
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(spawn([&, i] {
        for (int k = 0; k < times(500); ++k) {
          if (i % 3 == 0) {
            const std::scoped_lock lock(one, two);
            ++count;
          } else if (i % 3 == 1) {
            std::unique_lock second(two, std::defer_lock), first(one, std::defer_lock);
            std::lock(second, first);
            ++count;
          } else {
            const std::shared_lock lock(two);
            EXPECT_GE(count, 0);
          }
        }
      }));
    for (auto& each : all) each.get();
    EXPECT_EQ(count, 4L * times(500));
    std::unique_lock timed(one, 1h);
    EXPECT_TRUE(timed.owns_lock());
    std::shared_lock shared(two, ulexite::steady_clock::now() + 1h);
    EXPECT_TRUE(shared.owns_lock());
  });
}

TEST_P(SharedMutex, TimeOutsRaceWithUnlocks) {
  ulexite::shared_mutex guard;
  long written = 0;  // not atomic
  std::atomic<long> writes{0};
  const auto work = [&](int me) {
    for (int k = 0; k < times(500); ++k) {
      const auto time = std::chrono::microseconds((me * 7 + k) % 40);
      if (me % 2 == 0) {
        if (!guard.try_lock_for(time)) continue;
        ++written;
        if (k % 4 == 0) this_fiber::yield();
        guard.unlock();
        ++writes;
      } else {
        if (!guard.try_lock_shared_for(time)) continue;
        const long seen = written;
        if (k % 4 == 0) this_fiber::yield();
        EXPECT_EQ(seen, written);
        guard.unlock_shared();
      }
    }
  };
  crowd(rt(), 8, 2, work).join();
  EXPECT_EQ(written, writes);
  EXPECT_TRUE(guard.try_lock()) << "nobody left anything behind";
  guard.unlock();
}

}  // namespace
