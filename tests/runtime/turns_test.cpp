// More fibers take turns on a worker than its ring holds: all have them in about one order.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

// The longest wait of one of `fibers` that only yield, counted in turns of others, after two rounds of all.
long longest_wait(long fibers) {
  long turns = 0, longest = 0;
  std::vector<long> last(static_cast<std::size_t>(fibers), 0);
  runtime({.threads = 1}).run([&] {
    task_group all;
    for (long& mine : last)
      all.spawn([&] {
        while (turns < 40 * fibers) {
          ++turns;
          if (mine > 2 * fibers) longest = std::max(longest, turns - mine);
          mine = turns;
          this_fiber::yield();
        }
      });
    all.wait();
  });
  for (const long mine : last) longest = std::max(longest, turns - mine);
  return longest;
}

TEST(Turns, ComeInThreeRoundsBeyondTheRing) {
  for (const long fibers : {1000, 1100, 1500, 5000}) EXPECT_LE(longest_wait(fibers), 3 * fibers) << fibers << " fibers";
}

enum class beside { woken_fibers, spawns };

// How many turns 1,100 fibers have that compute for 100 us and yield, until 100 others have begun. These are spawned
// before the 1,100, and sleep again and again; or they are spawned after them, while another is spawned each
// millisecond.
long turns_before_all_have_begun(beside what) {
  long turns = 0, left = 100;
  runtime({.threads = 1}).run([&] {
    task_group all;
    const auto spawn_the_hundred = [&] {
      for (int i = 0; i < 100; ++i)
        all.spawn([&] {
          --left;
          while (what == beside::woken_fibers && left > 0) this_fiber::sleep_for(1ms);
        });
    };
    if (what == beside::woken_fibers) spawn_the_hundred();
    for (int i = 0; i < 1100; ++i)
      all.spawn([&] {
        while (left > 0) {
          ++turns;
          hog_until([] { return false; }, 100us);
          this_fiber::yield();
        }
      });
    if (what == beside::spawns) {
      spawn_the_hundred();
      while (left > 0) {
        this_fiber::sleep_for(1ms);
        all.spawn([] {});
      }
    }
    all.wait();
  });
  return turns;
}

TEST(Turns, OfNewFibersComeInThreeRoundsBesideWokenOnes) {
  EXPECT_LE(turns_before_all_have_begun(beside::woken_fibers), 3 * 1200);
}

// A spawn into a full ring moves 128 of its oldest behind all others.
TEST(Turns, OfNewFibersComeInThreeRoundsBesideSpawns) {
  EXPECT_LE(turns_before_all_have_begun(beside::spawns), 3 * 1200);
}

// 950 fibers, each of which starts a successor and ends: the ring never has room for what comes from elsewhere, and
// none of its fibers comes back. A fiber of a plain thread has its turn all the same.
TEST(Turns, OfAPlainThreadsFiberComesBesideFibersThatReplaceThemselves) {
  std::atomic<long> ran = 0, published_at = -1, begun_at = -1;
  runtime in({.threads = 1});
  std::thread outside([&] {
    while (ran < 10'000) std::this_thread::yield();
    auto mine = in.spawn([&] { begun_at = ran.load(); });
    published_at = ran.load();  // or later, which makes the wait seem shorter
    mine.get();
  });
  in.run([&] {
    task_group all;
    const std::function<void()> replace = [&] {
      if (++ran < 3'000'000 && begun_at < 0) all.spawn(replace);
    };
    for (int i = 0; i < 950; ++i) all.spawn(replace);
    all.wait();
  });
  outside.join();
  EXPECT_LT(begun_at - published_at, 20'000);
}

}  // namespace
