#pragma once

#include <atomic>
#include <thread>

#if defined(__SANITIZE_THREAD__)
#define ULEXITE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ULEXITE_TSAN 1
#endif
#endif
#ifndef ULEXITE_TSAN
#define ULEXITE_TSAN 0
#endif

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

  // What a thread does between two tries, the `turn`-th of them: another thread holds what it waits for, perhaps on
  // this very core, so spinning soon gives way to yielding.
  static void pause(unsigned turn) noexcept {
    if (turn < 64) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }

  // Orders everything before it against the load that follows: what was published is visible to whoever wrote `word`
  // later than the value returned. ThreadSanitizer does not model fences, so its builds read with an exchange, which
  // orders the same through the word's own modification order.
  template <class T>
  static T load_after_fence(std::atomic<T>& word) noexcept {
#if ULEXITE_TSAN
    return word.fetch_add(0, std::memory_order_seq_cst);  // pairs with the caller's partner, named there
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return word.load(std::memory_order_relaxed);  // ordered by the fence above
#endif
  }
};

}  // namespace ulexite::detail
