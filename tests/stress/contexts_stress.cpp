// Fibers move at random between contexts, pin themselves to workers, call functions on the thread's stack and spawn.
// The number of workers changes, and the world is stopped from time to time. Two fibers of a context never run at the
// same time, a pinned fiber stays on its thread, and no fiber is lost.

#include "stress/stress.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/select.hpp>

#include <deque>
#include <optional>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct room {
  explicit room(runtime& rt) : context(rt) {}
  concurrent_context context;
  std::atomic<int> inside{0};
  std::uint64_t unguarded = 0;
  std::atomic<std::uint64_t> entered{0};
};

struct world {
  explicit world(program& owner) : test(owner) {}

  program& test;
  std::deque<room> rooms;
  channel<int> pipe{2};
  mutex lock;
  std::atomic<std::uint64_t> frozen{0};  // above 0: no fiber may take a step

  void step(room* where) {
    test.moved();
    test.check(frozen == 0, "a fiber runs in a stopped world");
    if (!where) return;
    test.check(where->inside.fetch_add(1) == 0, "two fibers of a context run at the same time");
    ++where->unguarded;
    ++where->entered;
    where->inside.fetch_sub(1);
  }

  void wait(detail::random& random) {
    switch (random.below(7)) {
      case 0: this_fiber::yield(); break;
      case 1: this_fiber::sleep_for(std::chrono::microseconds(random.below(30))); break;
      case 2:
        if (int item = 1; random.below(2) == 0)
          static_cast<void>(pipe.send_for(item, std::chrono::microseconds(random.below(50))));
        break;
      case 3:
        if (int item = 0; random.below(2) == 0)
          static_cast<void>(pipe.receive_for(item, std::chrono::microseconds(random.below(50))));
        break;
      case 4: {
        const std::lock_guard held(lock);
        if (random.below(4) == 0) this_fiber::yield();
        break;
      }
      case 5: select(on_receive(pipe, [](auto) {}), after(std::chrono::microseconds(random.below(20)))); break;
      default: on_thread_stack([&] { test.moved(); }); break;
    }
  }

  void wander(room* where, std::uint64_t seed, int count, int depth) {
    detail::random random(seed);
    for (int i = 0; i < count; ++i) {
      step(where);
      wait(random);
      step(where);
      switch (random.below(8)) {
        case 0:
          where = &rooms[random.below(static_cast<std::uint32_t>(rooms.size()))];
          this_fiber::migrate_to(where->context);
          break;
        case 1:
          where = nullptr;
          this_fiber::migrate_to(current_runtime());
          break;
        case 2: {
          const no_migration_scope pinned;
          const auto mine = std::this_thread::get_id();
          for (int k = 0; k < 5; ++k) {
            wait(random);
            step(where);
            test.check(std::this_thread::get_id() == mine, "a pinned fiber has left its thread");
          }
          break;
        }
        case 3:
          if (depth > 0) {
            auto child = spawn([this, where, seed = random.next(), depth] { wander(where, seed, 5, depth - 1); });
            if (random.below(2) == 0) child.get();
          }
          break;
        case 4:
          if (random.below(8) == 0) block_in_place([] { std::this_thread::yield(); });
          break;
        default: break;
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  while (test.another_round()) {
    detail::random random = test.random();
    runtime rt({.threads = test.threads});
    test.show(&rt);
    std::vector<join_handle<>> fibers;
    {
      world one(test);
      for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) one.rooms.emplace_back(rt);
      const int count = 10 + static_cast<int>(random.below(100));
      for (std::uint32_t i = 0, n = 2 + random.below(20); i < n; ++i) {
        room* const where =
            random.below(3) == 0 ? nullptr : &one.rooms[random.below(static_cast<std::uint32_t>(one.rooms.size()))];
        const auto body = [&one, where, seed = random.next(), count] { one.wander(where, seed, count, 2); };
        fibers.push_back(where ? where->context.spawn(body) : rt.spawn(body));
      }
      std::atomic<bool> over{false};
      std::thread shaker([&, seed = random.next()] {
        detail::random dice(seed);
        while (!over) {
          rt.resize(1 + dice.below(static_cast<std::uint32_t>(test.threads)));
          if (dice.below(4) == 0) {
            const stopped_world stopped(rt, 60s);
            ++one.frozen;
            std::size_t seen = 0;
            for_each_fiber(rt, [&](const fiber_view&) { ++seen; });
            --one.frozen;
          }
          std::this_thread::sleep_for(std::chrono::microseconds(dice.below(500)));
        }
        rt.resize(test.threads);
      });
      for (auto& each : fibers) each.get();
      over = true;
      shaker.join();
      for (room& each : one.rooms) each.context.wait();
      rt.shutdown(shutdown_mode::drain);  // of the fibers that continue alone, perhaps into an empty context
      for (room& each : one.rooms)
        test.check(each.unguarded == each.entered, "a step was lost between fibers of a context");
    }
    test.check_metrics(rt, true);
    test.show(nullptr);
  }
  return test.report();
}
