#pragma once

// A spin lock that one worker may have to itself: while it is biased to that one, who locks it with two plain stores,
// no exchange; that is worth some 5 ns each time. Whoever else comes takes the bias away first, with a heavy fence,
// which takes microseconds. So it is given only to one that has locked it often enough in a row to pay for that, and
// the more often it was taken away, the later it is given again. After Dice, "Biased locking in HotSpot" (2006), and
// Russell and Detlefs (2006), without a safepoint.
//
// A worker is told by its address, and is one thread at a time, with all that the last one did seen by the next.
//
//   mine_     the lock of its owner: the favoured worker, and after that still the same one until it has come to take
//             shared_. Before, it might be about to lock and unlock mine_ in vain, while another is inside by it.
//   shared_   the lock of all others, who hold it while they take the bias away and until they are done.
//
// State
//   favoured_   the worker that the lock is biased to, or nobody. Changed with shared_ held: set by that worker itself,
//               and reset by others, so what a worker reads of it may only wrongly still be itself.
//
// Pairings
//   A  the favoured worker locks mine_, then loads favoured_; another resets favoured_, then looks at mine_. With a
//      light fence between the first and a heavy one between the second, either the worker sees that it is favoured no
//      more, and gives mine_ back, or the other sees mine_ locked, and waits.
//   B  mine_.unlock, release (spin_lock.hpp A)  ->  the other looks at mine_, acquire: it sees what the favoured worker
//      wrote. What others wrote, that worker saw when it took shared_, in which nobody else has been since.
//
// Checked by tests/model/biased_lock_model.cpp.

#include <ulexite/base/perturb.hpp>
#include <ulexite/base/spin_lock.hpp>

#include <cstdint>

namespace ulexite::detail {

// `Needed`: how often one worker locks it in a row before it gets it to itself for the first time. With perturbation
// points on, biases come and go all the time.
template <class Atomics = std_atomics, std::uint32_t Needed = perturbed ? 2 : 1024>
class basic_biased_lock {
 public:
  using part = basic_spin_lock<Atomics>;

  // Locks, and returns what is to be unlocked, by the same thread. `worker`: the caller's, null if it is none.
  [[nodiscard]] part& lock(const void* worker) noexcept {
    if (favours(worker) && lock_mine(worker)) [[likely]]
      return mine_;
    return lock_shared(worker);
  }

  // The same in two steps, for whoever has an easy way if the lock is its own. Is it biased to `worker`, the caller's?
  // Never to null.
  [[nodiscard]] bool favours(const void* worker) const noexcept {
    return favoured_.load(Atomics::relaxed) == name_of(worker);  // hint
  }
  // After that was true. Locks mine(); false if the bias has just been taken away.
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

  // shared_ held. Does the same worker come time and again?
  void count(const void* worker) noexcept {
    if (worker == owner_) owner_ = nullptr;  // it has noticed that it is favoured no more, or it would not be here
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

  static constexpr std::uintptr_t nobody = 1;  // not null, which is what a plain thread has for a worker

  typename Atomics::template atomic<std::uintptr_t> favoured_{nobody};
  part mine_, shared_;
  // guarded by shared_
  std::uint32_t needed_ = Needed;
  std::uint32_t in_a_row_ = 0;
  const void* last_ = nullptr;
  const void* owner_ = nullptr;  // of mine_, null: nobody locks it
};

using biased_lock = basic_biased_lock<>;

}  // namespace ulexite::detail
