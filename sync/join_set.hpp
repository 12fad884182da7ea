#pragma once

// Fibers that return their results in the order of their ends, after tokio's JoinSet.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace ulexite {

// A set of fibers that return a T, its children. next() returns their results, each as soon as its child has ended. Any
// fiber or thread may use it, but only one at a time may call next().
//
// A set must end before its runtime ends by shutdown_mode::abandon, which abandons children.
template <class T = void>
class join_set : public spawn_interface<join_set<T>> {
 public:
  // Makes an empty set. At most `limit` children run at the same time: a further spawn waits until a child has ended.
  // Throws usage_error for a limit of 0, or above task_group::unlimited, as -1.
  explicit join_set(std::size_t limit = task_group::unlimited) : children_(on_error::keep_going, limit) {}
  join_set(const join_set&) = delete;
  join_set& operator=(const join_set&) = delete;
  // Asks the children to stop, and waits for their ends. Drops results and failures that next() has not returned. Not a
  // cancellation point.
  ~join_set() {
    request_stop();
    const shield uninterrupted;
    children_.wait();
  }

  // Starts a child that calls function(arguments...). Waits while the limit is reached, and is a cancellation point
  // then. Throws like ulexite::spawn, with nothing started.
  using spawn_interface<join_set>::spawn;

  // Waits for the next end of a child. Returns the child's result (std::monostate for void, std::reference_wrapper for
  // a reference) or throws its exception. Each child is returned once; nullopt when none is left. Skips children that
  // request_stop() has cancelled. A cancellation point: if it throws operation_cancelled, it has taken nothing.
  std::optional<detail::storable<T>> next() {
    while (size() != 0) {
      ended_.acquire();
      const std::unique_ptr<ending> how(take());
      if (how->failure) std::rethrow_exception(how->failure);
      if (how->value) return std::move(how->value);
    }
    return std::nullopt;
  }

  // Asks the children to stop, also children that start later. Returns true the first time. Never waits.
  bool request_stop() noexcept { return children_.request_stop(); }

  // The number of children that next() has not returned yet. A hint if others spawn.
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }  // counter

 private:
  // The ending of a child. It is made with the child, so an end allocates nothing. It stays empty if the child was
  // cancelled or did not start.
  struct ending : detail::list_hook {
    std::optional<detail::storable<T>> value;
    std::exception_ptr failure;

    template <class F>
    void run(F&& call) noexcept {
      try {
        if constexpr (std::is_void_v<T>) {
          detail::call_function(std::forward<F>(call));
          value.emplace();
        } else {
          value.emplace(std::forward<F>(call)());
        }
      } catch (const operation_cancelled&) {
        if (!this_fiber::stop_requested()) failure = std::current_exception();
      } catch (...) {
        failure = std::current_exception();
      }
    }
  };

  // Counts a child, and gives its ending to next() when it is destroyed, unless it was moved from.
  class delivery {
   public:
    explicit delivery(join_set& set) : set_(set), how_(std::make_unique<ending>()) {
      set.size_.fetch_add(1, std::memory_order_relaxed);  // counter
    }
    delivery(delivery&&) noexcept = default;
    delivery& operator=(delivery&&) = delete;
    ~delivery() {
      if (how_) set_.deliver(*how_.release());
    }

    [[nodiscard]] ending& how() const noexcept { return *how_; }

   private:
    join_set& set_;
    std::unique_ptr<ending> how_;
  };

  // The function is destroyed before next() returns its result.
  template <class F>
  struct child {
    delivery end;
    F function;
    void operator()() { end.how().run(std::move(function)); }
  };

  // The endings that next() has not returned.
  struct endings {
    detail::intrusive_list<ending> list;
    endings() = default;
    endings(const endings&) = delete;
    endings& operator=(const endings&) = delete;
    ~endings() {
      while (const ending* const each = list.pop_front()) delete each;
    }
  };

  friend detail::spawn_access;
  template <class F, class... A>
  void start(const detail::task_options& options, F&& function, A&&... arguments) {
    delivery mine(*this);
    auto bound = detail::bind_once(std::forward<F>(function), std::forward<A>(arguments)...);
    static_assert(std::is_invocable_r_v<T, decltype(bound)>, "a child of a join_set<T> returns a T");
    detail::spawn_access::start(children_, options, child<decltype(bound)>{std::move(mine), std::move(bound)});
  }
  void deliver(ending& how) noexcept {
    {
      const std::lock_guard lock(guard_);
      done_.list.push_back(how);
    }
    ended_.release();
  }
  ending* take() noexcept {
    const std::lock_guard lock(guard_);
    size_.fetch_sub(1, std::memory_order_relaxed);  // counter
    return done_.list.pop_front();
  }

  std::atomic<std::size_t> size_{0};  // State: fibers that were not taken yet, a counter
  counting_semaphore<> ended_{0};     // a permit for each ending in done_
  detail::spin_lock guard_;           // guards done_
  endings done_;
  task_group children_;  // ends first
};

}  // namespace ulexite
