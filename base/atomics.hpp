#pragma once

#include <ulexite/base/fences.hpp>
#include <ulexite/base/sanitizers.hpp>

#include <atomic>
#include <thread>

namespace ulexite::detail {

// Tells the core that this thread is spinning.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The atomics a protocol class runs on. Production code uses this one; the model tests pass their own with the same
// names, so the text that is checked is the text that ships.
struct std_atomics {
  template <class T>
  using atomic = std::atomic<T>;

  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto release = std::memory_order_release;
  static constexpr auto acq_rel = std::memory_order_acq_rel;
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  // What a thread does between two tries, the `turn`-th of them. Long, because every look takes the word from the cache
  // of the one who works with it, and then everything else that the lock guards: two threads that fight over a channel
  // for each item get 5 times less done than two that leave each other some microseconds. The other may have been put
  // off this very core, so at last waiting gives way to yielding.
  static void pause(unsigned turn) noexcept {
    if (turn >= 4) {
      std::this_thread::yield();
      return;
    }
    for (int i = 0; i < (turn == 0 ? 128 : 256); ++i) cpu_relax();
  }

  // The two ends of a store-then-load race, see fences.hpp. ThreadSanitizer does not model fences; what they order are
  // atomics, so its builds lose nothing to look at without them: every race it could report is still one.
  static void light_fence() noexcept {
#if ULEXITE_TSAN
    tsan_fence();
#else
    if (fences_are_asymmetric) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
#endif
  }
  // The light one where the other side does without the heavy one if that is none (fences_are_asymmetric).
  static void compiler_fence() noexcept {
#if ULEXITE_TSAN
    tsan_fence();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
  static void heavy_fence() noexcept {
#if ULEXITE_TSAN
    tsan_fence();
#else
    detail::heavy_fence();
#endif
  }

  // Orders everything before it against the load that follows: what was published is visible to whoever changed `word`
  // later than the value returned. The full, symmetric form.
  template <class T>
  static T load_after_fence(std::atomic<T>& word) noexcept {
#if ULEXITE_TSAN
    return word.fetch_add(0, std::memory_order_seq_cst);  // pairs with the caller's partner, named there
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return word.load(std::memory_order_relaxed);  // ordered by the fence above
#endif
  }

 private:
#if ULEXITE_TSAN
  // An exchange on one common word orders like a fence.
  static void tsan_fence() noexcept {
    static std::atomic<unsigned> word{0};
    word.fetch_add(1, std::memory_order_seq_cst);  // pairs with itself
  }
#endif
};

}  // namespace ulexite::detail
