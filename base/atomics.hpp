#pragma once

#include <ulexite/base/fences.hpp>
#include <ulexite/base/sanitizers.hpp>

#include <sched.h>

#include <atomic>

namespace ulexite::detail {

// Tells the core that this thread is spinning.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The atomics policy of the protocol classes. Production code uses this one. The model tests pass a policy with the
// same names, so they check the text that ships.
struct std_atomics {
  template <class T>
  using atomic = std::atomic<T>;

  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto release = std::memory_order_release;
  static constexpr auto acq_rel = std::memory_order_acq_rel;
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  // Pauses between two tries; `attempt` is the number of the try. Pauses are long: each read pulls the lock's cache
  // line, and the data it guards, away from the holder. Two threads that contend for every item of a channel are 5
  // times slower than two that back off for some microseconds. Later attempts yield, because the holder may have been
  // preempted on this core.
  static void pause(unsigned attempt) noexcept {
    if (attempt >= 4) {
      ::sched_yield();
      return;
    }
    for (int i = 0; i < (attempt == 0 ? 128 : 256); ++i) cpu_relax();
  }

  // The two ends of a store-then-load race, see fences.hpp. ThreadSanitizer does not model fences. They order only
  // atomics, so a build for ThreadSanitizer without them reports every race that it could report with them.
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
  // The light fence, for pairs in which the other side omits the heavy fence if the kernel has none
  // (fences_are_asymmetric).
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

  // Orders all earlier writes before the load of `word`. A thread that changes `word` after the returned value sees
  // these writes. The full, symmetric form.
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
