// The timers of a loop under Relacy: the text that ships, without the kernel. A thread that blocks wakes no later than
// the earliest deadline. Time jumps to the alarm, and then no timer that was armed before may be overdue.
//
// MUTANT: seq_cst_is_acq_rel  the armer and the blocking thread do not see each other (A and B)
// MUTANT: no_help             the armer of an early timer does not set the alarm
//   evloop/timers.cpp: advance_alarm(deadline);  // A => return;
// MUTANT: announced_late      the thread reads the deadlines, and only then announces that it blocks
//   evloop/timers.cpp: wake_at_.store(INT64_MAX, std::memory_order_seq_cst);  // B => const std::int64_t deadline = next_deadline();\n  wake_at_.store(INT64_MAX, std::memory_order_seq_cst);
//   evloop/timers.cpp: perturb();\n  const std::int64_t deadline = next_deadline();\n => perturb();\n
// MUTANT: past_alarm          an alarm in the past is not set again
//   evloop/timers.cpp: alarm_ > time && alarm_ <= deadline;  // in the future => alarm_ <= deadline;  // in the future
// MUTANT: later_alarm         an alarm that is too late is not set again
//   evloop/timers.cpp: alarm_ > time && alarm_ <= deadline;  // in the future => alarm_ > time;  // in the future
// MUTANT: early_stands        the substitute has fired too early, and is not set again
//   evloop/timers.cpp: alarm_ = 0;\n =>
//
// EDIT: the kernel
//   evloop/timers.cpp: timerfd_create(CLOCK_MONOTONIC, => model::timerfd_create(CLOCK_MONOTONIC,
//   evloop/timers.cpp: timerfd_settime(timerfd_.get(), => model::timerfd_settime(timerfd_.get(),
//   evloop/owned_fd.hpp: ::close(fd_); =>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/timerfd.h>
#include <time.h>

#include "relacy_library.hpp"

enum class mutation { none, seq_cst_is_acq_rel, no_help, announced_late, past_alarm, later_alarm, early_stands };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders_of<mutant, model::by<mutation::seq_cst_is_acq_rel, model::seq_cst_is_acq_rel>>;

// A timerfd or its substitute, and the time, which passes only while a thread waits for the alarm. Guarded by `lock`.
constexpr std::int64_t never = INT64_MAX;
struct kernel {
  model::relacy_mutex lock;
  model::relacy_condition_variable changed;
  std::int64_t now = 0, alarm = never;
  bool refuses = false;

  void set(std::int64_t time) {
    const std::unique_lock guard(lock);
    alarm = time;
    changed.notify_all();
  }
};
kernel* the_kernel = nullptr;  // of the schedule

namespace model {
inline int timerfd_create(int, int) { return 1'000'000; }
inline int timerfd_settime(int, int, const itimerspec* when, itimerspec*) {
  if (the_kernel->refuses) return -1;
  the_kernel->set(when->it_value.tv_sec * 1'000'000'000 + when->it_value.tv_nsec);
  return 0;
}
}  // namespace model

// The substitute, which may fire too early.
int event_add(event*, const timeval* after) {
  the_kernel->set(the_kernel->now + std::int64_t{after->tv_usec} * 1000 - 1000 * rl::rand(2));
  return 0;
}

#include "relacy_agents.hpp"

#include <ulexite/evloop/timers.cpp>

using ulexite::detail::timer_event;

// Thread 0 turns the loop until all timers have fired that are not cancelled. The others arm, each in its own shard or
// both in one. The second also arms and cancels.
struct nobody_oversleeps : rl::test_suite<nobody_oversleeps, 3> {
  struct timer : timer_event {
    std::int64_t armed = never;  // since arm has returned
    bool fired = false;

    timer() {
      claim = [](ulexite::detail::event& self) noexcept { return static_cast<timer&>(self).fired = true; };
    }
  };

  kernel clock_and_alarm;
  struct ::event substitute{};
  std::optional<ulexite::detail::timers> timers;
  timer all[3];
  bool one_shard = false;

  void before() {
    the_kernel = &clock_and_alarm;
    model::clock = [] { return the_kernel->now; };
    one_shard = rl::rand(2);
    clock_and_alarm.refuses = rl::rand(2);
    timers.emplace(2, substitute);
  }
  void thread(unsigned id) {
    if (id == 0) {
      while (!turn()) {
      }
    } else if (id == 1) {
      arm(0, 20'000 + 10'000 * rl::rand(2), 0);
    } else {
      const bool cancels = rl::rand(2);
      if (cancels) arm(1, 10'000, !one_shard);
      all[1].armed = never;
      if (cancels) timers->cancel(all[1]);
      arm(2, 15'000 + 10'000 * rl::rand(2), !one_shard);
    }
  }
  void arm(int which, std::int64_t deadline, std::size_t shard) {
    timers->arm(all[which], deadline, shard);
    if (!all[which].fired) all[which].armed = deadline;
  }

  // True once all has fired.
  bool turn() {
    ulexite::detail::event_list ready;
    timers->fire(ready);
    if (all[0].fired && all[2].fired) return true;
    if (!timers->begin_wait()) return false;
    block();
    timers->end_wait();
    return false;
  }
  void block() {
    std::unique_lock lock(the_kernel->lock);
    while (the_kernel->alarm == never) the_kernel->changed.wait(lock);
    const std::int64_t alarm = std::exchange(the_kernel->alarm, never);
    if (alarm <= the_kernel->now) return;
    the_kernel->now = alarm;
    for (const timer& each : all) RL_ASSERT(each.fired || each.armed >= alarm);
  }
};

int main() { return model::holds<nobody_oversleeps>(100'000) ? 0 : 1; }
