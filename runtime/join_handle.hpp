#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

namespace ulexite {

namespace detail {
struct handle_access;
}

// The result of spawn: waits for a fiber's end and takes its result. Movable. Any thread may use it, also after the
// runtime has ended. Only one may wait at a time: a second wait throws usage_error.
//
// Dropping the handle detaches the fiber, which continues. An exception of the fiber that get() did not take then goes
// to runtime_options::on_unhandled_exception. Two exceptions do not go there: operation_cancelled of a fiber that was
// asked to stop, and deadline_exceeded after the fiber's inherited deadline has passed.
template <class T = void>
class join_handle {
 public:
  // A handle without a fiber.
  join_handle() = default;
  // Takes over the fiber of `other`, which then has none.
  join_handle(join_handle&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  // Drops its own fiber, and takes over that of `other`.
  join_handle& operator=(join_handle&& other) noexcept {
    if (this != &other) {
      drop();
      task_ = std::exchange(other.task_, nullptr);
    }
    return *this;
  }
  // Detaches the fiber.
  ~join_handle() { drop(); }

  // Waits for the end of the fiber, and leaves its result in place. Not a cancellation point, because the fiber often
  // refers to variables of its waiter, which an exception would destroy; on_join in a select is one. Throws usage_error
  // without a fiber, or if the fiber itself calls it. Before the fiber's end also under a no_suspend_scope, and while
  // another caller waits.
  void join() { checked("join").join(); }

  // Waits for the end of the fiber, and takes its result or throws its exception. Afterwards the handle has no fiber.
  // Not a cancellation point. Throws usage_error as join().
  T get() {
    checked("get").join();
    const join_handle last(std::move(*this));
    return last.task_->take();
  }

  // Waits as join(), at most for `time`, or until `time`. Returns true if the fiber has ended. Throws usage_error as
  // join().
  [[nodiscard]] bool wait_for(relative_timeout time) { return checked("wait_for").join(time.deadline()); }
  [[nodiscard]] bool wait_until(absolute_timeout time) { return checked("wait_until").join(time.deadline()); }

  // Whether the fiber has ended. False without a fiber. Never waits.
  [[nodiscard]] bool done() const noexcept { return task_ && task_->done(); }
  // Whether there is a fiber.
  [[nodiscard]] bool joinable() const noexcept { return task_ != nullptr; }
  // Detaches the fiber, which continues.
  void detach() noexcept { drop(); }

  // Asks the fiber to stop: its present or next cancellation point throws operation_cancelled. Returns true the first
  // time, false without a fiber.
  bool request_stop() noexcept { return task_ && task_->request_stop(); }

  // A token of the requests to stop the fiber, also of its runtime's. An empty token without a fiber. Throws
  // std::bad_alloc.
  [[nodiscard]] std::stop_token get_stop_token() const { return task_ ? task_->get_stop_token() : std::stop_token{}; }

  // The fiber's number, unique in the process. 0 without a fiber.
  [[nodiscard]] std::uint64_t id() const noexcept { return task_ ? task_->id : 0; }

 private:
  explicit join_handle(detail::result_task<T>& task) noexcept : task_(&task) {}
  detail::result_task<T>& checked(const char* operation) const {
    if (!task_) throw usage_error(std::string("join_handle::") + operation + " without a fiber");
    if (task_ == detail::this_task())
      throw usage_error(std::string("join_handle::") + operation + " by the fiber itself");
    return *task_;
  }
  void drop() noexcept {
    if (auto* const task = std::exchange(task_, nullptr)) task->release();
  }

  friend struct detail::handle_access;

  detail::result_task<T>* task_ = nullptr;
};

// For spawn, select and the C interface.
struct detail::handle_access {
  template <class T>
  static join_handle<T> handle_of(result_task<T>& task) noexcept {
    return join_handle<T>(task);
  }
  template <class T>
  static task& task_of(const join_handle<T>& handle, const char* operation) {
    return handle.checked(operation);
  }
  // Null: the handle has no fiber.
  template <class T>
  static task* task_if_any(const join_handle<T>& handle) noexcept {
    return handle.task_;
  }
};

}  // namespace ulexite
