#pragma once

// The deadlines of a loop: sharded heaps, and one timerfd that ends a blocking wait. Arming costs no system call,
// except when a thread is blocked until later than the new deadline: then the armer sets the timerfd itself. That does
// not wake the blocked thread now, only in time.
//
// State
//   shard::earliest  the deadline on top of the heap; INT64_MAX: it is empty. Written under the shard's lock. Stale
//                    low: a wait ends too early and is repeated. A and B exclude "stale high": the armer helps.
//   shard::armed     the size of the heap. Written under the shard's lock. A counter.
//   wake_at_         `nobody`: no thread is blocked. Otherwise the latest time at which the blocked thread wakes by
//                    itself. INT64_MAX: it sleeps until an event or a wake. Written under alarm_lock_.
//   alarm_           the last time set in the timerfd, perhaps in the past; INT64_MAX: none. Under alarm_lock_.
//                    0: the system has refused it, and the substitute is set.
//
// Pairings
//   A  arm stores earliest, then loads wake_at_ (B's word), both seq_cst.
//   B  begin_wait stores wake_at_, then loads earliest (A's word), both seq_cst.
//      The four are in one total order. If B's load misses the new deadline, A's load is after B's store. So it sees
//      the announcement, or a later store by begin_wait or end_wait. If arm sees a time not after its deadline, it has
//      nothing to do, because the wait ends in time. If arm sees `nobody`, it has nothing to do either. The next wait
//      stores wake_at_ after A's load, so its B sees the deadline. An arm reads wake_at_ only if its timer is the new
//      earliest of its shard. A timer behind another one is checked when the other one has fired or was cancelled. The
//      reason: `earliest` never exceeds the deadline of an armed timer. A and B only decide which thread sets the
//      timerfd. The timers themselves are published by their shard's lock.
//
// No thread may stay blocked beyond a deadline. The timerfd is not set again if its time is in the future, and not
// after the wanted time. Then it fires too early, once, and the next wait sets it. So time limits that are armed and
// cancelled for each request cost one system call per length of the limit, not one per wait.
//
// Checked by tests/model/timers_model.cpp.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/evloop/event.hpp>
#include <ulexite/evloop/owned_fd.hpp>
#include <ulexite/evloop/timer_heap.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

struct event;  // libevent's

namespace ulexite::detail {

class timers {
 public:
  // `substitute` is an event of libevent with a time limit. It ends the wait where a sandbox refuses a timerfd.
  timers(std::size_t shards, struct ::event& substitute);

  // The descriptor that becomes readable (as an edge, it is never read) when a wait must end. Negative: refused.
  [[nodiscard]] int descriptor() const noexcept { return timerfd_.get(); }

  // As event_loop's. Any thread.
  void reserve(std::size_t count);
  void arm(timer_event& timer, std::int64_t deadline, std::size_t shard) noexcept;
  bool cancel(timer_event& timer) noexcept;
  [[nodiscard]] std::int64_t next_deadline() const noexcept;
  [[nodiscard]] std::size_t armed() const noexcept;

  // Appends the expired timers that it could claim: in order within a shard, shard by shard. The turning thread.
  void fire(event_list& ready) noexcept;

  // Announces that the turning thread is about to block, and sets the timerfd for the earliest deadline. False: a timer
  // has expired already. Then nothing is announced, and the thread must not block.
  [[nodiscard]] bool begin_wait() noexcept;
  // Takes the announcement back.
  void end_wait() noexcept;

 private:
  struct alignas(cache_line) shard_state {
    spin_lock lock;
    timer_heap heap;
    std::atomic<std::int64_t> earliest{INT64_MAX};
    std::atomic<std::size_t> armed{0};
  };

  static constexpr std::int64_t nobody = INT64_MIN;

  static bool fire_some(shard_state& shard, std::int64_t now, event_list& ready) noexcept;
  static void note_removed(shard_state& shard) noexcept;
  void advance_alarm(std::int64_t deadline) noexcept;
  void set_alarm(std::int64_t deadline) noexcept;

  std::vector<shard_state> shards_;
  owned_fd timerfd_;
  struct ::event& substitute_;
  alignas(cache_line) std::atomic<std::int64_t> wake_at_{nobody};
  spin_lock alarm_lock_;
  std::int64_t alarm_ = INT64_MAX;
};

}  // namespace ulexite::detail
