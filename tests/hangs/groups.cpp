// Hangs at the ends of fibers, and where several meet.

#include "hang.hpp"

#include <ulexite/interop/ulexite.h>

namespace ulexite::hangs {
namespace {

void join_of_each_other(runtime& rt) {
  rt.run([] {
    join_handle<void> first;
    latch made(1);
    auto second = spawn({.name = "second"}, [&] {
      made.wait();
      first.join();
    });
    first = spawn({.name = "first"}, [&] { second.join(); });
    made.count_down();
    event never;
    never.wait();
  });
}

void scope_waits_for_a_dead_partner(runtime& rt) {
  rt.run([] {
    channel<int> values;
    task_group children;
    children.spawn(fiber_options{.name = "producer"}, [] { /* ended before it sent */ });
    children.spawn(fiber_options{.name = "consumer"}, [&] { values.receive(); });
    children.wait();
  });
}

void wait_group_without_done(runtime& rt) {
  rt.run([] {
    wait_group jobs;
    jobs.add(2);
    jobs.done();
    jobs.wait();
  });
}

void context_keeps_a_fiber(runtime& rt) {
  rt.run([] {
    concurrent_context context("session");
    event never;
    context.spawn({.name = "member"}, [&] { never.wait(); }).detach();
    context.wait();
  });
}

void nobody_unparks(runtime& rt) {
  rt.run([] {
    ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
    options.name = "parked";
    ulx_fiber* const parked =
        ulx_spawn([](void*) -> std::intptr_t { return ulx_park(ULX_FOREVER); }, nullptr, &options);
    ulx_join(parked, ULX_FOREVER, nullptr);
    ulx_fiber_release(parked);
  });
}

void latch_counts_too_high(runtime& rt) {
  rt.run([] {
    latch all(3);
    spawn([&] { all.count_down(); }).join();
    spawn([&] { all.count_down(); }).join();
    all.wait();
  });
}

void barrier_lacks_one(runtime& rt) {
  rt.run([] {
    barrier<> meeting(3);
    task_group all;
    for (int i = 0; i < 2; ++i) all.spawn(fiber_options{.name = "early"}, [&] { meeting.arrive_and_wait(); });
    all.wait();
  });
}

void branch_waits(runtime& rt) {
  rt.run([] {
    event never;
    parallel_invoke([&] { never.wait(); }, [] {});
  });
}

void work_with_arguments(runtime& rt) {
  rt.run([] {
    channel<int> values;
    spawn([](channel<int>& from) { from.receive(); }, std::ref(values)).join();
  });
}

}  // namespace

std::initializer_list<hang> hangs_of_groups() {
  static const std::initializer_list<hang> all = {
      {"join_of_each_other",
       join_of_each_other,
       {"circle: fiber #", "for the end of fiber #", "which waits", "for the end of fiber #"}},
      {"scope_waits_for_a_dead_partner",
       scope_waits_for_a_dead_partner,
       {"\"main\": waits", "for the fibers of task_group 0x", "\"consumer\": waits", "to receive"}},
      {"wait_group_without_done", wait_group_without_done, {"\"main\": waits", "for wait_group 0x"}},
      {"context_keeps_a_fiber",
       context_keeps_a_fiber,
       {"\"main\": waits", "for the fibers of context 0x", "\"member\": waits", "for event 0x"}},
      {"nobody_unparks",
       nobody_unparks,
       {"to be unparked at 0x", "\"main\": waits", "\"parked\"\n"}},  // and main for the end of "parked"
      {"latch_counts_too_high", latch_counts_too_high, {"\"main\": waits", "for latch 0x"}},
      {"barrier_lacks_one", barrier_lacks_one, {"\"early\" and 1 more alike", "at barrier 0x"}},
      {"branch_waits", branch_waits, {"deadlock", "waits", "for event 0x"}},
      {"work_with_arguments", work_with_arguments, {"to receive from channel", "spawned at", "hangs+0x"}},
  };
  return all;
}

}  // namespace ulexite::hangs
