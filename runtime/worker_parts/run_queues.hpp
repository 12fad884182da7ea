#pragma once

// The queues of one worker, and the turns that it takes among them. docs/scheduler.md has the table of all queues.
//
// State
//   ring_    a deque, see deque.hpp: jobs, and fibers that were spawned, have yielded, or were displaced from the slot.
//   woken_   a deque: fibers that the event loop or another thread has woken. Fibers only.
//   slot_    the fiber that this worker runs next, because it woke that one last. Stolen by a thief on its last try and
//            by the monitor, see next_slot.hpp.
//   pinned_  fibers that only this worker may run, brought by any thread. It has a lock, see inject_queue.hpp.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/queue/deque.hpp>
#include <ulexite/runtime/queue/inject_queue.hpp>
#include <ulexite/runtime/queue/next_slot.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ulexite::detail {

// The ring's last turn beside other queues. After a long one maintenance is due, and the woken fibers have as much time
// as it took. Owner only.
class ring_turn {
 public:
  [[nodiscard]] bool runs() const noexcept { return began_ != 0; }
  void begin(std::int64_t now) noexcept { began_ = now; }
  void end(std::int64_t now) noexcept {
    const std::int64_t took = now - std::exchange(began_, 0);
    maintenance_due_ = took >= tuning::long_turn;
    woken_until_ = maintenance_due_ ? now + std::min(took, tuning::longest_debt) : 0;
  }
  void begin_maintenance(std::int64_t now) noexcept {
    if (runs()) end(now);
    maintenance_due_ = false;
  }
  [[nodiscard]] bool maintenance_due() const noexcept { return maintenance_due_; }
  // Whether the ring has its next turn later. Reads the clock only after a long turn.
  [[nodiscard]] bool woken_are_first() noexcept {
    if (woken_until_ != 0 && now_ns() >= woken_until_) woken_until_ = 0;
    return woken_until_ != 0;
  }

 private:
  bool maintenance_due_ = false;
  std::int64_t began_ = 0;        // 0: it is over
  std::int64_t woken_until_ = 0;  // 0: that is over too
};

class alignas(cache_line) run_queues {
 public:
  // `alone`: the runtime has one worker at most. Then no thread steals, and a pop needs no locked instruction.
  explicit run_queues(bool alone) noexcept : alone_(alone) {}
  run_queues(const run_queues&) = delete;
  run_queues& operator=(const run_queues&) = delete;

  [[nodiscard]] bool alone() const noexcept { return alone_; }

  // Owner only, below.

  // Whether maintenance is due because a turn of the ring was long.
  [[nodiscard]] bool maintenance_due() const noexcept { return ring_turn_.maintenance_due(); }
  void begin_maintenance(std::int64_t now) noexcept { ring_turn_.begin_maintenance(now); }
  [[nodiscard]] bool has_woken() const noexcept { return !woken_.seems_empty(); }

  // Puts it behind the others of its kind. False if there is no room.
  [[nodiscard]] bool push(job& fiber) noexcept { return ring_.push(fiber); }
  [[nodiscard]] bool push_woken(job& fiber) noexcept {
    only_ring_filled_ = false;
    return woken_.push(fiber);
  }
  [[nodiscard]] std::size_t room_for_woken() const noexcept { return tuning::ring_size - woken_.size(); }
  [[nodiscard]] bool push_job(job& job) noexcept { return ring_.push_opaque(job); }
  // Moves the oldest of a full ring to `into`. False: a thief was faster, so there is room now.
  [[nodiscard]] bool evict_oldest(intrusive_queue<job>& into) noexcept {
    return ring_.evict<tuning::ring_overflow>([&](job& old) { into.push(old); });
  }
  // For fibers from elsewhere. The rest of the ring is for the next spawns: if it were full, each burst of them would
  // move the oldest behind all others, again and again.
  [[nodiscard]] std::size_t room() const noexcept {
    constexpr std::size_t most = tuning::ring_size - tuning::ring_overflow;
    return most - std::min(ring_.size(), most);
  }
  // If most of the fibers that ran since mark_filled have come back into the ring, or some and it has no room, moves a
  // share of them to `into`, oldest first, and at most a batch. With this share, the fibers of the ring and the
  // `others`, which wait elsewhere, have turns equally often. Parents in a tree of fibers must not give way, because
  // each holds a stack until its children have ended. But if none comes back, as if each starts a successor and ends,
  // the ring may never have room. So then it moves one in each eighth of its turn. Returns how many. The worker has
  // spawned and dispatched so many.
  [[nodiscard]] std::size_t take_newest(std::size_t others, std::uint64_t spawned, std::uint64_t dispatched,
                                        intrusive_queue<job>& into) noexcept {
    const std::int64_t returned = ring_.pushed() - static_cast<std::int64_t>(spawned) - returned_;
    const auto ran = static_cast<std::int64_t>(dispatched - dispatched_);
    const bool come_back = returned > 0 && (room() == 0 || 2 * returned > ran);
    if (!come_back && (room() > 0 || 8 * (dispatched - came_at_) < ring_.size())) return 0;
    const std::size_t all = ring_.size() + others;
    const std::size_t most = come_back ? std::min(static_cast<std::size_t>(returned), tuning::inject_batch) : 1;
    const std::size_t count = (most * others + all - 1) / all;
    return ring_.take_newest(count, [&](job& young) { into.push(young); }) ? count : 0;
  }
  // The worker has brought fibers to the ring from elsewhere. It has spawned and dispatched so many.
  void mark_filled(std::uint64_t spawned, std::uint64_t dispatched) noexcept {
    returned_ = ring_.pushed() - static_cast<std::int64_t>(spawned);
    dispatched_ = dispatched;
  }
  // Ordinary fibers have come from elsewhere. The worker has dispatched so many.
  void mark_ordinary(std::uint64_t dispatched) noexcept { came_at_ = dispatched; }

  // Fills the slot. Returns the fiber that was there, or null.
  job* put_into_slot(job& woken) noexcept {
    job* const displaced = has_slot() ? slot_.take() : nullptr;
    slot_.put(woken);
    return displaced;
  }
  // Empties the slot: null if it is empty, or a thief is faster.
  [[nodiscard]] job* take_slot() noexcept { return slot_.take(); }
  // The same to run it now, which counts as one more dispatch from the slot in a row.
  [[nodiscard]] job* next_from_slot() noexcept {
    job* const woken = slot_.take();
    if (woken) ++slot_streak_;
    return woken;
  }
  // Whether others that wait must come first now.
  [[nodiscard]] bool slot_streak_exceeded() const noexcept { return slot_streak_ >= tuning::slot_streak_limit; }
  void reset_slot_streak() noexcept { slot_streak_ = 0; }

  // The fiber that was put there last was given a lock.
  void mark_holder(const job& woken) noexcept { holder_ = &woken; }
  // Whether that is the fiber that has left the slot and has to wait. Ends the mark.
  [[nodiscard]] bool unmark_holder(const job& left_slot) noexcept {
    if (holder_ != &left_slot) return false;
    holder_ = nullptr;
    return true;
  }

  // The next of the deques. Null if they are empty, a pinned fiber has its turn, or maintenance must come first.
  [[nodiscard, gnu::always_inline]] job* next_in_line() noexcept {
    slot_streak_ = 0;
    return only_ring_filled_ ? pop_ring() : next_round_robin();
  }

  // Empties slot and deques: calls take(job&, priority) for each, in the order slot, ring, woken.
  template <class Take>
  void drain(Take&& take) noexcept {
    if (job* const next = has_slot() ? slot_.take() : nullptr) take(*next, priority::woken);
    while (job* const next = ring_.pop_top()) take(*next, priority::ordinary);
    while (job* const next = woken_.pop_top()) take(*next, priority::woken);
    only_ring_filled_ = true;
    ring_turn_ = {};
  }

  // Takes half of the woken fibers of `victim`, and returns the first of them; or null.
  [[nodiscard]] job* steal_woken(run_queues& victim) noexcept {
    job* const woken = victim.woken_.steal_half(woken_);
    if (woken) only_ring_filled_ = false;
    return woken;
  }
  // The same with its ring.
  [[nodiscard]] job* steal_ring(run_queues& victim) noexcept { return victim.ring_.steal_half(ring_); }

  // Up to `most` of the pinned fibers. Takes a lock.
  void take_pinned(std::size_t most, intrusive_queue<job>& into) noexcept {
    pinned_turn_ = false;
    pinned_.take(most, into);
  }
  // Whether one of them has its turn.
  [[nodiscard]] bool pinned_is_next() const noexcept { return pinned_turn_ && has_pinned(); }
  // From now on the pinned fibers have turns.
  void on_pinned() noexcept { only_ring_filled_ = false; }
  // The running fiber is pinned here from now on, or no longer.
  void pin() noexcept { ++pins_; }
  void unpin() noexcept { --pins_; }
  [[nodiscard]] bool has_pins() const noexcept { return pins_ > 0; }

  // Any thread, below.

  void push_pinned(job& fiber) noexcept { pinned_.push(fiber); }
  [[nodiscard]] bool has_pinned() const noexcept { return !pinned_.empty(); }
  [[nodiscard]] bool has_slot() const noexcept { return slot_.filled(); }
  // Takes the fiber in the slot. Any thread but the owner; it costs a heavy fence.
  [[nodiscard]] job* steal_slot() noexcept { return slot_.steal(); }
  // Whether there may be something in the deques. Never false after an earlier push, except during take_newest.
  [[nodiscard]] bool may_have_items() const noexcept { return ring_.may_have_items() || woken_.may_have_items(); }
  // How many are in the deques: a hint.
  [[nodiscard]] std::size_t size() const noexcept { return ring_.size() + woken_.size(); }

 private:
  using run_deque = deque<job, tuning::ring_size, deque_order::first_in_first_out>;

  // Fibers that were woken have three turns of four, because they hold a stack, and their wait is over. If the ring's
  // last turn was long, they also have as much time as that. Before each turn of the woken a pinned fiber has one,
  // because it was woken too; it is left to the main stack, because its queue has a lock. So no kind starves another.
  [[gnu::noinline]] job* next_round_robin() noexcept {
    const bool timed = ring_turn_.runs();
    if (timed) ring_turn_.end(now_ns());
    if (maintenance_due()) return nullptr;
    if (pinned_is_next()) return nullptr;
    if (++woken_turn_ % 4 != 0 || ring_turn_.woken_are_first()) {
      pinned_turn_ = true;
      if (job* const woken = pop_woken()) return woken;
    }
    // Exact for the deque, because only the owner adds to it. For what is pinned later, maintenance is asked for.
    only_ring_filled_ = timed && !has_woken() && !has_pinned();
    job* const mine = pop_ring();
    if (!mine) return pop_woken();
    if (!only_ring_filled_) ring_turn_.begin(now_ns());
    return mine;
  }
  [[nodiscard, gnu::always_inline]] job* pop_ring() noexcept { return pop(ring_, prefetch<8>); }
  [[nodiscard, gnu::always_inline]] job* pop_woken() noexcept { return pop(woken_, prefetch<2>); }
  template <class... Ahead>
  [[nodiscard]] job* pop(run_deque& from, Ahead... ahead) noexcept {
    return alone_ ? from.pop_top_alone(ahead...) : from.pop_top(ahead...);
  }

  // With a thousand fibers that take turns, a dispatch waits for their memory to arrive in the first cache. So this
  // fetches the block of the fiber after the next ahead. It also fetches the top of the next fiber's stack, if it has
  // one, because that fiber's block is here already. Blocks of fibers are never unmapped, so a stale pointer does no
  // harm; jobs are opaque. A fiber that waited in a channel needs 8 lines of its stack until its end. For fibers that
  // the event loop has woken, more than two lines did not help.
  template <int Lines>
  static constexpr auto prefetch = []([[maybe_unused]] const job& next, [[maybe_unused]] const job& after_next) {
#if !ULEXITE_TSAN && !ULEXITE_ASAN  // which report a read through a stale pointer as an error
    __builtin_prefetch(&after_next);
    const auto* const frame = static_cast<const char*>(static_cast<const task&>(next).saved.frame);
    if (frame)
      for (int line = 0; line < Lines; ++line) __builtin_prefetch(frame + line * cache_line);
#endif
  };

  // owner only
  const bool alone_;
  bool only_ring_filled_ = true;  // nothing was pushed to woken_, nor noted in pinned_, since both were empty
  bool pinned_turn_ = false;      // a pinned fiber is next, if there is one
  unsigned slot_streak_ = 0;      // dispatches in a row from the slot
  const job* holder_ = nullptr;   // only compared, because it may have run since, and ended
  unsigned woken_turn_ = 0;       // counts the turns: woken_ has three of four
  ring_turn ring_turn_;           // the last one that began while others than the ring may have been filled
  std::int64_t returned_ = 0;     // of the ring's pushes up to the last mark_filled, those that were no spawns
  std::uint64_t dispatched_ = 0;  // its `dispatched`
  std::uint64_t came_at_ = 0;     // that of mark_ordinary
  unsigned pins_ = 0;             // how many fibers are pinned to this worker

  // shared
  run_deque ring_;
  run_deque woken_;
  inject_queue pinned_;
  alignas(cache_line) next_slot<job> slot_;
};

}  // namespace ulexite::detail
