#pragma once

// A count of things to wait for, after Go's sync.WaitGroup.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ulexite {

namespace detail {
class wait_group_case;
}

// Counts work under way; a wait ends when the count is zero. Fibers and plain threads may use it at the same time. It
// may be destroyed as soon as the last wait has returned, even if the done() that ended the wait has not returned yet.
class wait_group {
 public:
  // Makes a wait_group with a count. Throws usage_error for a count above max().
  explicit wait_group(std::size_t count = 0) : word_(checked(count) * one) {}
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  // The largest count.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return INT32_MAX; }

  // Changes the count. Never waits. Throws usage_error, with the count unchanged, if it would rise above max() or fall
  // below zero.
  void add(std::ptrdiff_t count = 1) { change(scaled(count)); }
  // Same as add(-1).
  void done() { change(-one); }

  // The count. A hint if others change it.
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(word_.load(std::memory_order_relaxed) / one);  // hint
  }

  // Waits until the count is zero. A cancellation point: throws operation_cancelled.
  void wait() { wait_until_ns(detail::no_deadline); }
  // Waits as wait(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool wait_for(relative_timeout time) { return wait_until_ns(time.deadline()); }
  [[nodiscard]] bool wait_until(absolute_timeout time) { return wait_until_ns(time.deadline()); }

  // Gone. They only name their successors, until 0.2.
  template <class F, class... A>
  void spawn(F&&, A&&...) {
    static_assert(sizeof(F) == 0,
                  "wait_group only counts: use task_group::spawn, whose wait() throws what a fiber threw");
  }
  // As spawn.
  template <class F, class... A>
  void spawn_batch(std::size_t, F&&, A&&...) {
    static_assert(sizeof(F) == 0, "wait_group only counts: use task_group::spawn_batch");
  }

 private:
  friend class detail::wait_group_case;

  static constexpr std::int64_t one = std::int64_t{1} << 32;
  static constexpr std::int64_t waited_bit = 1;

  static std::int64_t scaled(std::ptrdiff_t count) {
    if (count > max() || count < -max()) [[unlikely]]
      refuse(std::to_string(count));
    return count * one;
  }
  static std::int64_t checked(std::size_t count) {
    if (count > static_cast<std::size_t>(max())) [[unlikely]]
      refuse(std::to_string(count));
    return static_cast<std::int64_t>(count);
  }
  [[noreturn]] static void refuse(const std::string& count);
  // The common case: the count will not be zero, and no other thread interferes.
  void change(std::int64_t by) {
    const detail::yield_point at_exit;
    std::int64_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
    const auto next = static_cast<std::int64_t>(static_cast<std::uint64_t>(word) + static_cast<std::uint64_t>(by));
    if (next < one ||  // or above max(), and so wrapped
        !word_.compare_exchange_strong(word, next, std::memory_order_release, std::memory_order_relaxed))  // A
      change_slow(by);
  }
  void change_slow(std::int64_t by);
  // With guard_ held: whether the count is zero. If not, the done() that makes it zero takes the guard.
  [[nodiscard]] bool zero_or_marked() noexcept;
  [[nodiscard]] bool wake_all(std::int64_t word) noexcept;
  bool wait_until_ns(std::int64_t deadline);

  // State
  //   word_   the count in its upper half. The lowest bit is waited_bit: a waiter has entered the queue. While it is
  //           set, the last done changes the count with guard_ held. The next wait that finds zero clears it, also with
  //           guard_ held. So zero without the bit means that no done() is under way.
  //
  // Pairings
  //   A  add and done change word_, release  ->  wait, or the last done, reads zero, acquire: the waiter sees all
  //      writes before each done.
  //
  // tests/model/wait_group_model.cpp checks A.
  std::atomic<std::int64_t> word_;
  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
