// Fibers and plain threads that wait at semaphores, events, futures and broadcasts, alone and in selects, with requests
// for several permits, time-outs and cancellations. No permit is lost or made, no set() is taken twice, and every value
// reaches every receiver.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/broadcast.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/watch.hpp>

#include <deque>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct board {
  program& test;
  const std::ptrdiff_t permits;
  counting_semaphore<> left, right;
  auto_reset_event pulse;
  event over;
  std::atomic<std::uint64_t> pulses{0}, taken{0};
  broadcast<std::uint64_t> news{16};
  watch<std::uint64_t> newest{0};

  board(program& owner, std::ptrdiff_t count) : test(owner), permits(count), left(count), right(0) {}

  // Moves permits from one side to the other: one by a select, or several together.
  void move_permits(std::uint64_t seed, int count) {
    detail::random random(seed);
    for (int i = 0; i < count; ++i) {
      test.moved();
      const auto n = static_cast<std::ptrdiff_t>(1 + random.below(static_cast<std::uint32_t>(permits)));
      auto& from = random.below(2) == 0 ? left : right;
      auto& to = &from == &left ? right : left;
      switch (random.below(4)) {
        case 0:
          if (from.try_acquire_for(std::chrono::microseconds(random.below(100)), n)) to.release(n);
          break;
        case 1:
          if (from.try_acquire(n)) to.release(n);
          break;
        case 2:
          select(on_acquire(from, [&] { from.release(); }), after(std::chrono::microseconds(random.below(50))));
          break;
        default:
          select(on_acquire(left, [&] { right.release(); }), on_acquire(right, [&] { left.release(); }),
                 on_set(pulse, [&] { ++taken; }), on_set(over),
                 when(random.below(2) == 0, after(std::chrono::microseconds(random.below(100)))));
      }
    }
  }

  void set_pulses(std::uint64_t seed, int count) {
    detail::random random(seed);
    for (int i = 0; i < count; ++i) {
      pulse.set();
      ++pulses;
      if (random.below(4) == 0) this_fiber::yield();
    }
  }

  // Numbers arrive in order, and together with the missed ones they are complete.
  void follow(broadcast_receiver<std::uint64_t> mine, std::uint64_t seed) {
    detail::random random(seed);
    std::uint64_t seen = 0;
    for (bool open = true; open;) {
      const auto take = [&](std::optional<std::uint64_t> value) {
        if (!value) {
          open = false;
          return;
        }
        ++seen;
        test.check(*value == seen + mine.missed(), "a broadcast has lost or repeated a value");
        test.moved();
      };
      if (random.below(2) == 0) {
        take(mine.receive());
      } else {
        select(on_receive(mine, take), after(std::chrono::microseconds(random.below(50))));
      }
    }
    sent_to_each = seen + mine.missed();
  }
  std::atomic<std::uint64_t> sent_to_each{0};

  void follow_newest(watch_receiver<std::uint64_t> mine) {
    std::uint64_t last = 0;
    while (const auto value = mine.receive()) {
      test.check(*value > last, "a watch has gone back");
      last = *value;
      test.moved();
    }
    last_seen = last;
  }
  std::atomic<std::uint64_t> last_seen{0};
};

void join_unless_cancelled(std::vector<join_handle<>>& fibers) {
  for (auto& each : fibers) get_unless_cancelled(each);
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_a_runtime_each([&](runtime& rt, detail::random& random) {
    board one(test, 1 + static_cast<std::ptrdiff_t>(random.below(6)));
    const int each = 1 + static_cast<int>(random.below(300));
    std::vector<join_handle<>> fibers, cancelled, followers;
    for (std::uint32_t i = 0, n = 1 + random.below(12); i < n; ++i)
      fibers.push_back(rt.spawn([&one, each, seed = random.next()] { one.move_permits(seed, each); }));
    for (std::uint32_t i = 0, n = random.below(4); i < n; ++i)
      cancelled.push_back(rt.spawn([&one, each, seed = random.next()] { one.move_permits(seed, each); }));
    fibers.push_back(rt.spawn([&one, each, seed = random.next()] { one.set_pulses(seed, each); }));
    for (int i = 0; i < 3; ++i)
      followers.push_back(rt.spawn(
          [&one, mine = one.news.subscribe(), seed = random.next()]() mutable { one.follow(std::move(mine), seed); }));
    followers.push_back(
        rt.spawn([&one, mine = one.newest.subscribe()]() mutable { one.follow_newest(std::move(mine)); }));
    std::thread outside([&one, each, seed = random.next()] { one.move_permits(seed, each); });
    promise<void> told;
    auto telling = told.get_future().share();
    fibers.push_back(rt.spawn([&] { select(on_ready(telling), on_set(one.over)); }));

    for (int i = 1; i <= each; ++i) {
      one.news.send(static_cast<std::uint64_t>(i));
      one.newest.set(static_cast<std::uint64_t>(i));
      if (random.below(8) == 0) std::this_thread::yield();
    }
    one.news.close();
    one.newest.close();
    join_unless_cancelled(followers);
    test.check(one.sent_to_each == static_cast<std::uint64_t>(each), "a broadcast has lost its end");
    test.check(one.last_seen == static_cast<std::uint64_t>(each), "a watch has lost its last value");
    for (auto& fiber : cancelled) fiber.request_stop();
    join_unless_cancelled(cancelled);
    told.set_value();
    one.over.set();  // fibers that wait for a permit that is never released continue
    join_unless_cancelled(fibers);
    outside.join();

    std::ptrdiff_t left = 0;
    while (one.left.try_acquire() || one.right.try_acquire()) ++left;
    test.check(left == one.permits, "permits were lost or made", left);
    test.check(one.taken <= one.pulses, "a set() was taken twice");
  });
}
