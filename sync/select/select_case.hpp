#pragma once

// The cases of a select, and the choice between them.
//
// A select waits in several queues at the same time. It has a node in its frame for each, and one wait word for all.
// The claimer of this word ends the wait, and every other claim is lost (wait_word.hpp). There are three steps, as in
// Go's runtime (2011) and before it in Pike's Newsqueak:
//
//   1  Each case is tried alone, in the order of preference. The select usually ends here.
//   2  All cases are tried with the locks of all sources held, taken in the order of their addresses. If none is ready,
//      the word is prepared and each case enters its queue, before any lock is released. So no partner can serve the
//      select until it is in every queue. And a select never matches itself, because it tries all its cases before it
//      enters any queue.
//   3  After the wait each case leaves its queue, under its source's lock. So it waits for a partner that is just
//      serving it, and the node outlives this service.
//
// Two selects that need each other's channels cannot both claim. A select that is not yet asleep holds all its locks,
// and claims a sleeper. It cannot be claimed itself, because it is in no queue. Checked by
// tests/model/select_model.cpp.

#include <ulexite/base/biased_lock.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite {

// The type of in_order.
struct in_order_t {};
// Pass it to select before its cases: of several ready cases select then takes the first, not any.
inline constexpr in_order_t in_order{};

namespace detail {

// One case, in the frame of the selecting fiber. A source with a queue has a lock. Other sources (time, stop) have
// none.
class select_case {
 public:
  enum class ending {
    other,   // this case did not end the wait
    chosen,  // this case ended the wait, and its operation is done
    again,   // this case ended the wait without a result: the select starts again
  };

  select_case() = default;
  explicit select_case(biased_lock& lock) noexcept : source(&lock), biased_(true) {}
  explicit select_case(spin_lock& lock) noexcept : source(&lock) {}
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

  // Locks the source, if it has a lock. Skips it if another case holds the lock: `held`. `worker` is the caller's.
  void lock(scheduler* worker, const void* held = nullptr) noexcept {
    if (source == held) {
      locked_ = nullptr;
    } else if (biased_) {
      locked_ = &static_cast<biased_lock*>(source)->lock(worker);
    } else {
      locked_ = static_cast<spin_lock*>(source);
      locked_->lock();
    }
  }
  void unlock() noexcept {
    if (locked_) locked_->unlock();
  }
  // The lock that the case holds.
  [[nodiscard]] spin_lock* held_lock() const noexcept { return locked_; }
  // Does the operation if no wait is needed. The lock held. Sets `wake` to the agent to resume once the lock is
  // released, also after an exception.
  [[nodiscard]] virtual bool attempt(agent*& wake) = 0;
  // Enters the source's queue, so that the source may end the wait of `self`. The word of `self` is prepared. The lock
  // held, if there is one.
  virtual void enter(agent& self) noexcept = 0;
  // Leaves the source's queue. The lock held, if there is one.
  [[nodiscard]] virtual ending leave() noexcept = 0;

  void* const source = nullptr;         // the lock of its source; null: it has none
  std::int64_t deadline = no_deadline;  // the end of the wait that this case allows

 private:
  spin_lock* locked_;          // the lock to unlock, or null
  const bool biased_ = false;  // whether the lock is a biased one

 public:
  bool enabled = true;

 protected:
  ~select_case() = default;
};

// The two halves of a wait of `self` for one of `cases`, which are all enabled; `by_source` has them again. Both may be
// reordered.
//
// Returns the case that was ready, and whose operation is done. Null: if it may wait, the agent's word is prepared and
// all cases are in their queues. Throws operation_cancelled, and exceptions of a value's move.
select_case* try_or_enter(std::span<select_case*> cases, std::span<select_case*> by_source, caller self, bool in_order,
                          bool may_wait);
// The first case whose time ends the wait between the two.
select_case* earliest(std::span<select_case*> cases) noexcept;
// Leaves the queues after the wait. Returns the case that ended it, which is `first` after a time-out; or null: it was
// cancelled, or the caller must start again.
select_case* leave_all(std::span<select_case*> cases, wake_reason reason, select_case* first) noexcept;

// Chooses one of `cases`, does its operation and returns it. Null if none is ready and `may_wait` is false. All `cases`
// are enabled. `by_source` has the same cases, best in the order of their sources. Both may be reordered. Throws
// operation_cancelled, and exceptions of a value's move.
select_case* choose(std::span<select_case*> cases, std::span<select_case*> by_source, bool in_order, bool may_wait);

}  // namespace detail
}  // namespace ulexite
