#pragma once

// A count of things to wait for, after Go's sync.WaitGroup.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/task/task_batch.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace ulexite {

namespace detail {
class wait_group_case;
}

// Counts work under way; a wait ends when the count is zero. Fibers and plain threads may use it at the same time. It
// may be destroyed as soon as the last wait has returned, even if the done() that ended the wait has not returned yet.
class wait_group {
 public:
  // Makes a wait_group with a count. Throws usage_error for a count above `most`.
  explicit wait_group(std::size_t count = 0) : word_(checked(count) * one) {}
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;
  // Waits for the fibers of spawn(), if a cancelled wait() has left some, but not for the done() of an add(). Does not
  // ask them to stop. Not a cancellation point.
  ~wait_group() {
    if (word_.load(std::memory_order_acquire) != 0) [[unlikely]]  // A
      outlive_fibers();
  }

  // The largest count.
  static constexpr std::ptrdiff_t most = INT32_MAX;

  // Changes the count. Never waits. Throws usage_error, with the count unchanged, if it would rise above `most`, or
  // fall below zero or below the number of running fibers of spawn().
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

  // Starts a fiber that calls `function`, and counts it until it has ended. Its exception goes to
  // runtime_options::on_unhandled_exception. Throws as ulexite::spawn, with the count unchanged.
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
  void spawn(F&& function, std::source_location where = std::source_location::current()) {
    if (!try_change(one + one_spawned)) [[unlikely]]
      change(one + one_spawned);
    completion end(this);  // made first, so that any exception below undoes the count
    detail::spawn_task(detail::callers_runtime(), {.where = where, .detached = true},
                       counted<std::decay_t<F>>{std::move(end), std::forward<F>(function)});
  }

  // Starts `count` fibers. Fiber number i, from 0, calls a copy of `function` with i, and is counted until it has
  // ended. It is cheaper than `count` calls of spawn(), and starts all or none: no fiber starts before all are made.
  // Throws as spawn, exceptions of a copy of `function`, and usage_error above `most`. Then no fiber starts, and the
  // count is unchanged.
  template <class F>
    requires std::is_invocable_v<F, std::size_t> && std::is_copy_constructible_v<F>
  void spawn_batch(std::size_t count, F function, std::source_location where = std::source_location::current()) {
    start_all(count, where, [&](completion end, std::size_t i) {
      return counted<numbered<F>>{std::move(end), numbered<F>{i, function}};
    });
  }

 private:
  friend class task_group;
  friend class detail::wait_group_case;

  static constexpr std::int64_t one = std::int64_t{1} << 32;
  static constexpr std::int64_t one_spawned = 2;
  static constexpr std::int64_t waited_bit = 1;

  // Counts a fiber as done when it is destroyed, unless it was moved from.
  class completion {
   public:
    explicit completion(wait_group* group) noexcept : group_(group) {}
    completion(completion&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
    completion& operator=(completion&&) = delete;
    ~completion() {
      if (group_ && !group_->try_change(-one - one_spawned)) group_->change(-one - one_spawned);
    }
    // Leaves the count to another completion.
    void forget() noexcept { group_ = nullptr; }

   private:
    wait_group* group_;
  };
  // The function is destroyed before its fiber is counted as done.
  template <class F>
  struct counted {
    completion end;
    [[no_unique_address]] F function;
    auto operator()() {
      if constexpr (detail::makes_coroutine<F>) {
        return std::move(function)();
      } else {
        std::move(function)();
      }
    }
  };
  template <class F>
  struct numbered {
    std::size_t number;
    [[no_unique_address]] F function;
    decltype(auto) operator()() { return std::invoke(std::move(function), number); }
  };

  // The part of the count that belongs to fibers of a batch that are not made yet.
  struct share {
    wait_group& group;
    std::int64_t left;
    ~share() {
      if (left != 0) group.change(-left * (one + one_spawned));
    }
  };
  // Starts detached fibers that call the closures make(completion, i), for i from 0 up to `count`.
  template <class Make>
  void start_all(std::size_t count, std::source_location where, Make&& make) {
    detail::runtime_state& rt = detail::this_runtime_state();
    if (count == 0) return;
    const std::int64_t all = checked(count);
    change(all * (one + one_spawned));
    share unmade{*this, all};
    detail::task_batch batch(rt, where);
    for (std::size_t i = 0; i < count; ++i) {
      completion end(this);
      --unmade.left;
      batch.add(detail::make_task(rt, make(std::move(end), i)));
    }
    batch.publish();
  }

  static std::int64_t scaled(std::ptrdiff_t count) {
    if (count > most || count < -most) [[unlikely]]
      refuse(std::to_string(count));
    return count * one;
  }
  static std::int64_t checked(std::size_t count) {
    if (count > static_cast<std::size_t>(most)) [[unlikely]]
      refuse(std::to_string(count));
    return static_cast<std::int64_t>(count);
  }
  [[noreturn]] static void refuse(const std::string& count);
  // The common case of change: no bound is near, and no other thread interferes.
  bool try_change(std::int64_t by) noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
    return word >= 2 * one && word < most * one &&
           word_.compare_exchange_strong(word, word + by, std::memory_order_release, std::memory_order_relaxed);  // A
  }
  void change(std::int64_t by);
  // With guard_ held: whether the count is zero. If not, the done() that makes it zero takes the guard.
  [[nodiscard]] bool zero_or_marked() noexcept;
  [[nodiscard]] bool wake_all(std::int64_t word) noexcept;
  void outlive_fibers() noexcept;
  // The kind and the object are for reports; the object is this one unless given.
  bool wait_until_ns(std::int64_t deadline, detail::wait_kind kind = detail::wait_kind::wait_group,
                     const void* object = nullptr);

  // State
  //   word_     the count in its upper half. Below it, the number of running fibers of spawn(), which the count
  //             includes. The lowest bit is waited_bit: a waiter has entered the queue. While it is set, the last done
  //             changes the count with guard_ held. The next wait that finds zero clears it, also with guard_ held. So
  //             zero without the bit means that no done() is under way.
  //   ending_   the destructor waits for the fibers, and has removed the rest of the count. Set once, by the
  //             destructor.
  //
  // Pairings
  //   A  add and done change word_, release  ->  wait, or the last done, reads zero, acquire: the waiter sees all
  //      writes before each done.
  //   B  the destructor sets ending_, then changes word_, release  ->  a done that finds the count too low loads word_,
  //      acquire, then ending_. It sees that the destructor has removed its share.
  //
  // tests/model/wait_group_model.cpp checks A. Only the argument supports B.
  std::atomic<std::int64_t> word_;
  std::atomic<bool> ending_{false};
  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
