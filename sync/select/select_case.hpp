#pragma once

// What select chooses from, and how it chooses.
//
// A select waits in several queues at once, with a node in its frame for each, and one wait word for all: whoever
// claims that word has ended the wait, and everybody else finds it lost (wait_word.hpp). Three steps, after Go's
// runtime (2011), which in turn follows Pike's Newsqueak:
//
//   1  Each case is tried alone, in the order of preference: the usual end.
//   2  All cases are tried with the locks of all sources held, taken in the order of their addresses; if none can be
//      done, the word is prepared and each case enters its queue, before any lock is released. So nobody can serve the
//      select before it stands everywhere, and it never meets itself: what it tried, it tried before it stood anywhere.
//   3  After the wait each case leaves its queue, under its source's lock. That waits for whoever is serving just now,
//      so the node, and what was put through it, outlives the service.
//
// Two selects that want each other's channels cannot both claim: the one that is not yet asleep holds all its locks,
// and claims a sleeper; nobody can claim it, for it stands nowhere. Checked by tests/model/select_model.cpp.

#include <ulexite/base/biased_lock.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite {

// The type of in_order.
struct in_order_t {};
// Given to select before its cases: of several ready cases the first is taken, not any.
inline constexpr in_order_t in_order{};

namespace detail {

// One case, in the frame of the selecting fiber. A source with a queue has a lock; the others (time, stop) have none.
class select_case {
 public:
  enum class ending {
    other,   // the wait was not ended through this case
    chosen,  // it was, and what is to be done is done
    again,   // it was, but in vain: the select begins anew
  };

  select_case() = default;
  explicit select_case(biased_lock& lock) noexcept : source(&lock), biased_(true) {}
  explicit select_case(spin_lock& lock) noexcept : source(&lock) {}
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

  // Locks the source, if there is one and unless another case holds it: `held`. `worker`: the caller's.
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
  // Does it if that needs no wait. The lock held. `wake`: whom to resume once the lock is released, also after an
  // exception.
  [[nodiscard]] virtual bool attempt(agent*& wake) = 0;
  // Makes the source end the wait of `self`, whose word is prepared. The lock held, if there is one.
  virtual void enter(agent& self) noexcept = 0;
  // Lets the source forget the wait. The lock held, if there is one.
  [[nodiscard]] virtual ending leave() noexcept = 0;

  void* const source = nullptr;  // the lock of what it comes from; null: it has none
  bool enabled = true;
  std::int64_t deadline = no_deadline;  // until when this case lets the select wait

 protected:
  ~select_case() = default;

 private:
  const bool biased_ = false;  // is the lock a biased one?
  spin_lock* locked_;          // what is to be unlocked, if anything
};

// The one of `cases` that came about, by an operation that was done; null if none can come about without a wait and
// `may_wait` is false. `cases` are enabled. `by_source` are the same once more, best in the order of their sources.
// Both may be reordered. Throws operation_cancelled, and what the move of a value throws.
select_case* choose(std::span<select_case*> cases, std::span<select_case*> by_source, bool in_order, bool may_wait);

}  // namespace detail
}  // namespace ulexite
