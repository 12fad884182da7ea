// More fibers take turns on a worker than its ring holds: all have them in about one order.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/no_yield.hpp>
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

// The longest wait of one of `lines` of fibers, each of which starts its successor and ends, in runs of all, beside
// fibers that sleep again and again. The ring never has room for what comes from elsewhere, and none of its fibers
// comes back.
long longest_gap_of_lines(std::size_t lines, int sleepers) {
  constexpr long most = 300'000;
  std::vector<long> last(lines, 0);
  long ran = 0, longest = 0;
  runtime({.threads = 1}).run([&] {
    task_group all;
    for (int i = 0; i < sleepers; ++i)
      all.spawn([&] {
        while (ran < most) this_fiber::sleep_for(100us);
      });
    const std::function<void(long&)> run_and_replace = [&](long& mine) {
      longest = std::max(longest, ++ran - mine);
      mine = ran;
      if (ran < most) all.spawn([&] { run_and_replace(mine); });
    };
    {
      const no_yield_scope all_at_once;
      for (long& mine : last) all.spawn([&] { run_and_replace(mine); });
    }
    all.wait();
  });
  for (const long mine : last) longest = std::max(longest, ran - mine);
  return longest;
}

TEST(Turns, OfFibersThatReplaceThemselvesComeBesideAFullRing) {
  for (const std::size_t lines : {950, 1025, 1100}) EXPECT_LE(longest_gap_of_lines(lines, 0), 100'000) << lines;
  EXPECT_LE(longest_gap_of_lines(1025, 900), 100'000);
}

// Its turn comes although none of the 950 in the ring comes back.
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
