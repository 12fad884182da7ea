// Hangs at locks: the mutex's holder is known, so the report names holder and waiter.

#include "hang.hpp"

#include <ulexite/coroutine.hpp>

#include <mutex>
#include <shared_mutex>

namespace ulexite::hangs {
namespace {

using namespace std::chrono_literals;

// `count` fibers. Each takes the mutex of its number, and then the next mutex.
void lock_in_a_circle(runtime& rt, std::size_t count) {
  rt.run([count] {
    std::vector<mutex> mutexes(count);
    latch all_hold_one(static_cast<std::ptrdiff_t>(count));
    task_group fibers;
    for (std::size_t i = 0; i < count; ++i)
      fibers.spawn(fiber_options{.name = "philosopher " + std::to_string(i)}, [&, i] {
        const std::lock_guard left(mutexes[i]);
        all_hold_one.arrive_and_wait();
        const std::lock_guard right(mutexes[(i + 1) % count]);
      });
    fibers.wait();
  });
}

void two_mutexes(runtime& rt) { lock_in_a_circle(rt, 2); }
void three_mutexes(runtime& rt) { lock_in_a_circle(rt, 3); }
void ten_mutexes(runtime& rt) { lock_in_a_circle(rt, 10); }

void holder_sends(runtime& rt) {
  rt.run([] {
    mutex guard;
    channel<int> results;
    latch held(1);
    auto writer = spawn({.name = "writer"}, [&] {
      const std::lock_guard lock(guard);
      held.count_down();
      results.send(1);
    });
    held.wait();
    const std::lock_guard lock(guard);  // the receive below never comes
    results.receive();
  });
}

void holder_receives(runtime& rt) {
  rt.run([] {
    mutex guard;
    channel<int> orders;
    latch held(1);
    spawn({.name = "keeper"}, [&] {
      const std::lock_guard lock(guard);
      held.count_down();
      orders.receive();
    }).detach();
    held.wait();
    task_group others;
    for (int i = 0; i < 5; ++i) others.spawn([&] { const std::lock_guard lock(guard); });
    others.wait();
  });
}

void holder_joins_a_waiter(runtime& rt) {
  rt.run([] {
    mutex guard;
    const std::lock_guard lock(guard);
    spawn({.name = "helper"}, [&] { const std::lock_guard inner(guard); }).join();
  });
}

void reader_sends(runtime& rt) {
  rt.run([] {
    shared_mutex table;
    channel<int> results;
    latch held(1);
    spawn({.name = "reader"}, [&] {
      const std::shared_lock lock(table);
      held.count_down();
      results.send(1);
    }).detach();
    held.wait();
    const std::lock_guard lock(table);
    results.receive();
  });
}

void lost_notify(runtime& rt) {
  rt.run([] {
    mutex guard;
    condition_variable changed;
    bool ready = false;
    changed.notify_one();  // before any fiber waits
    std::unique_lock lock(guard);
    changed.wait(lock, [&] { return ready; });
  });
}

void notify_without_the_change(runtime& rt) {
  rt.run([] {
    mutex guard;
    condition_variable changed;
    int level = 0;
    auto consumer = spawn({.name = "consumer"}, [&] {
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return level == 2; });
    });
    {
      const std::lock_guard lock(guard);
      level = 1;
    }
    changed.notify_all();
    consumer.join();
  });
}

void lost_permit(runtime& rt) {
  rt.run([] {
    counting_semaphore<2> permits(1);
    spawn([&] { permits.acquire(); }).join();  // never given back
    spawn({.name = "second"}, [&] { permits.acquire(); }).join();
  });
}

// One set() lets one wait pass, not both.
void one_set_for_two(runtime& rt) {
  rt.run([] {
    auto_reset_event pulse;
    auto first = spawn({.name = "first"}, [&] { pulse.wait(); });
    auto second = spawn({.name = "second"}, [&] { pulse.wait(); });
    pulse.set();
    first.join();
    second.join();
  });
}

// A coroutine and a fiber hold a mutex each, and wait for the other's.
void coroutine_and_fiber(runtime& rt) {
  rt.run([] {
    mutex one, other;
    latch all_hold_one(2);
    auto coroutine = spawn({.name = "without a stack"}, [&]() -> task<> {
      const auto held = co_await co_lock(one);
      co_await co_arrive_and_wait(all_hold_one);
      const auto second = co_await co_lock(other);
    });
    spawn({.name = "with a stack"}, [&] {
      const std::lock_guard held(other);
      all_hold_one.arrive_and_wait();
      const std::lock_guard second(one);
    }).join();
    coroutine.join();
  });
}

}  // namespace

std::initializer_list<hang> hangs_of_locks() {
  static const std::initializer_list<hang> all = {
      {"two_mutexes", two_mutexes, {"deadlock", "circle: fiber #", "philosopher", "for mutex 0x", "held by fiber #"}},
      {"three_mutexes", three_mutexes, {"circle: ", "held by", "which waits", "held by", "which waits", "held by"}},
      {"ten_mutexes", ten_mutexes, {"deadlock", "circle: ", "philosopher"}},
      {"holder_sends",
       holder_sends,
       {"deadlock", "\"writer\" holds mutex 0x", "for which 1 fiber waits", "to send to channel 0x",
        "where no other fiber waits", "\"main\": waits", "for mutex"}},
      {"holder_receives",
       holder_receives,
       {"\"keeper\" holds mutex 0x", "for which 5 fibers wait", "to receive from channel", "no other fiber"}},
      {"holder_joins_a_waiter",
       holder_joins_a_waiter,
       {"circle: fiber #", "\"main\" waits", "for the end of fiber #", "\"helper\", which waits", "for mutex 0x",
        "held by fiber #", "\"main\""}},
      {"reader_sends",
       reader_sends,
       {"\"main\": waits", "for shared_mutex 0x", "\"reader\"", "to send", "holds 1 lock"}},
      {"lost_notify", lost_notify, {"\"main\": waits", "for condition_variable 0x"}},
      {"notify_without_the_change",
       notify_without_the_change,
       {"\"main\": waits", "for the end of fiber #", "\"consumer\": waits", "for condition_variable"}},
      {"lost_permit", lost_permit, {"\"main\": waits", "\"second\": waits", "for semaphore 0x"}},
      {"one_set_for_two", one_set_for_two, {"\"main\": waits", "for auto_reset_event 0x"}},
      {"coroutine_and_fiber",
       coroutine_and_fiber,
       {"deadlock", "circle: fiber #", "held by fiber #", "\"without a stack\": waits", "for mutex 0x",
        "a coroutine: no stack while it waits", "\"with a stack\": waits", "for mutex 0x", "stack: "}},
  };
  return all;
}

}  // namespace ulexite::hangs
