#pragma once

// A spin lock that can be biased to one worker. The favoured worker locks and unlocks with plain stores, which saves
// some 5 ns for the exchange. Any other thread first revokes the bias with a heavy fence, which takes microseconds. So
// the bias is granted only after many locks in a row by one worker, and later after each revocation. After Dice,
// "Biased locking in HotSpot" (2006), and Russell and Detlefs (2006), without a safepoint.
//
// A worker is identified by its address. It is one thread at a time, and the next thread sees all writes of the last
// one.
//
//   mine_     only its owner locks it. The owner is the favoured worker, and stays the owner after a revocation until
//             it next takes shared_. Until then it may still lock and unlock mine_ without effect, so mine_ must not
//             get another owner.
//   shared_   the lock of all other threads. They hold it while they revoke the bias and until they are done.
//
// State
//   favoured_   the worker to which the lock is biased, or `nobody`. Changed with shared_ held: set by the worker
//               itself, reset by others. So a stale value can only tell a worker that it is still favoured.
//
// Pairings
//   A  the favoured worker locks mine_, then loads favoured_; another thread resets favoured_, then loads mine_. A
//      light fence separates the worker's steps, a heavy one the other's. So either the worker sees that it is no
//      longer favoured, and unlocks mine_, or the other thread sees mine_ locked, and waits.
//   B  mine_.unlock, release (spin_lock.hpp A)  ->  the other thread loads mine_, acquire: it sees the writes of the
//      favoured worker. The favoured worker saw the writes of others when it took shared_; no other thread has held
//      shared_ since.
//
// Checked by tests/model/biased_lock_model.cpp.

#include <ulexite/base/perturb.hpp>
#include <ulexite/base/spin_lock.hpp>

#include <cstdint>

namespace ulexite::detail {

// `Needed` is the number of locks in a row by one worker before the first bias. With perturbation points on, it is
// small, so biases change all the time.
template <class Atomics = std_atomics, std::uint32_t Needed = perturbed ? 2 : 1024>
class basic_biased_lock {
 public:
  using part = basic_spin_lock<Atomics>;

  // Locks, and returns the part that the calling thread must unlock. `worker` is the caller's, null on a plain thread.
  [[nodiscard]] part& lock(const void* worker) noexcept {
    if (favours(worker) && lock_mine(worker)) [[likely]]
      return mine_;
    return lock_shared(worker);
  }

  // Locking in two steps. It lets a caller have a fast path under the bias. Whether the lock is biased to `worker`, the
  // caller's. False for null.
  [[nodiscard]] bool favours(const void* worker) const noexcept {
    return favoured_.load(Atomics::relaxed) == name_of(worker);  // hint
  }
  // Locks mine(), after favours() was true. False if the bias has just been revoked.
  [[nodiscard]] bool lock_mine(const void* worker) noexcept {
    mine_.lock_alone();
    Atomics::light_fence();                                              // A
    if (favoured_.load(Atomics::relaxed) == name_of(worker)) [[likely]]  // ordered by the fence
      return true;
    mine_.unlock();
    return false;
  }
  [[nodiscard]] part& mine() noexcept { return mine_; }

 private:
  [[gnu::noinline]] part& lock_shared(const void* worker) noexcept {
    shared_.lock();
    if (favoured_.load(Atomics::relaxed) != nobody) [[unlikely]]  // guarded by shared_
      take_bias_away();
    count(worker);
    return shared_;
  }

  // shared_ held.
  [[gnu::cold, gnu::noinline]] void take_bias_away() noexcept {
    favoured_.store(nobody, Atomics::relaxed);  // ordered by the fence
    Atomics::heavy_fence();                     // A
    mine_.wait_until_free();                    // B
    if (needed_ < most_needed) needed_ *= 2;
  }

  // shared_ held. Counts the locks in a row by one worker, and grants it the bias after enough of them.
  void count(const void* worker) noexcept {
    if (worker == owner_) owner_ = nullptr;  // it takes shared_, so it knows that it is no longer favoured
    if (worker != last_ || !worker) {
      last_ = worker;
      in_a_row_ = 0;
    } else if (++in_a_row_ >= needed_ && !owner_) {
      in_a_row_ = 0;
      owner_ = worker;
      favoured_.store(name_of(worker), Atomics::relaxed);  // this worker's own; others read it with shared_ held
    }
  }

  static constexpr std::uint32_t most_needed = Needed << (perturbed ? 1 : 12);

  static std::uintptr_t name_of(const void* worker) noexcept { return reinterpret_cast<std::uintptr_t>(worker); }

  static constexpr std::uintptr_t nobody = 1;  // not null, because null is the worker of a plain thread

  typename Atomics::template atomic<std::uintptr_t> favoured_{nobody};
  part mine_, shared_;
  // guarded by shared_
  std::uint32_t needed_ = Needed;
  std::uint32_t in_a_row_ = 0;
  const void* last_ = nullptr;
  const void* owner_ = nullptr;  // of mine_; null: no worker may lock it
};

using biased_lock = basic_biased_lock<>;

}  // namespace ulexite::detail
