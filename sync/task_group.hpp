#pragma once

// Structured concurrency: fibers that end before the function that started them. After Sústrik's libdill (2016) and
// Smith's nurseries (2018).

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/task/task_batch.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {
struct coroutine_access;
struct group_access;
class task_group_case;
}  // namespace detail

// The effect of a child's failure on the other children of a task_group.
enum class on_error {
  cancel_siblings,  // ask them to stop
  keep_going,       // no effect
};

// A set of fibers, its children, with a common end. A child may add others. Any fiber or thread may use it, but only
// one at a time may call wait().
//
// A group must end before its runtime ends by shutdown_mode::abandon, which abandons children.
//
// A child fails when an exception leaves it, except the operation_cancelled of a child that was asked to stop. The
// group keeps the first failure until a wait() throws it, and then the next one. It counts all failures. A child's
// join_handle gives its failure too.
class task_group : public spawn_interface<task_group> {
 public:
  // Makes a group without children. At most `limit` children run at the same time: a further spawn waits until a child
  // has ended, as in Go's errgroup. Throws usage_error for a limit of 0, or above unlimited, as -1.
  explicit task_group(on_error policy = on_error::cancel_siblings, std::size_t limit = unlimited)
      : policy_(policy), limited_(limit < unlimited), room_(checked(limit), PTRDIFF_MAX) {}
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  // Asks the children to stop and waits for their ends. Not a cancellation point. A failure that no wait() has thrown
  // goes to runtime_options::on_unhandled_exception. It does not if another exception destroys the group, or if the
  // child met an inherited deadline.
  ~task_group();

  // The limit of a group without one.
  static constexpr std::size_t unlimited = PTRDIFF_MAX;

  // Starts a child, and returns its join_handle<R>, which may be dropped. Otherwise as ulexite::spawn. If a stop was
  // requested of the group, the child starts with this request. In a group with a limit it waits for room, and is a
  // cancellation point. A child that spawns into its own full group can deadlock.
  using spawn_interface::spawn;

  // Starts `count` children. Child number i, from 0, calls a copy of `function` with i. All start or none: no child
  // starts before all are made. Throws as spawn, and exceptions of a copy of `function`. Throws usage_error for more
  // than 2^31 - 1. In a group with a limit it is as `count` calls of spawn(), which wait for room.
  template <class F>
    requires std::is_invocable_v<F, std::size_t> && std::is_copy_constructible_v<F>
  void spawn_batch(std::size_t count, F function, std::source_location where = std::source_location::current()) {
    if (count > most_at_once) refuse_batch(count);
    if (limited()) {
      for (std::size_t i = 0; i < count; ++i) start({.where = where}, numbered<F>{i, function});
      return;
    }
    detail::runtime_state& rt = detail::this_runtime_state();
    detail::task_batch batch(rt, where);
    for (std::size_t i = 0; i < count; ++i)
      batch.add(detail::make_task(rt, child<numbered<F>>{member(*this), numbered<F>{i, function}}));
    batch.publish();
  }

  // Starts a child as spawn, or returns false if it would have to wait for room. Never waits.
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
  [[nodiscard]] bool try_spawn(F&& function, std::source_location where = std::source_location::current()) {
    if (limited() && !room_.try_acquire()) return false;
    start_in_room({.where = where}, std::forward<F>(function));
    return true;
  }

  // As try_spawn, but waits for room at most for `time`, or until `time`. A cancellation point.
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
  [[nodiscard]] bool try_spawn_for(F&& function, relative_timeout time,
                                   std::source_location where = std::source_location::current()) {
    return try_start(time.deadline(), where, std::forward<F>(function));
  }
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
  [[nodiscard]] bool try_spawn_until(F&& function, absolute_timeout time,
                                     std::source_location where = std::source_location::current()) {
    return try_start(time.deadline(), where, std::forward<F>(function));
  }
  // The former order.
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
  [[nodiscard, deprecated("use try_spawn_until(function, time)")]] bool try_spawn_until(
      absolute_timeout time, F&& function, std::source_location where = std::source_location::current()) {
    return try_start(time.deadline(), where, std::forward<F>(function));
  }

  // Waits until every child has ended, then throws the kept failure, once. A cancellation point. If the caller is asked
  // to stop, or its deadline has passed, it first asks the children to stop and waits for their ends.
  void wait() { wait_until_ns(detail::no_deadline); }
  // Wait as wait(), at most for `time`, or until `time`. If the time passed first, return false: the children continue.
  [[nodiscard]] bool wait_for(relative_timeout time) { return wait_until_ns(time.deadline()); }
  [[nodiscard]] bool wait_until(absolute_timeout time) { return wait_until_ns(time.deadline()); }

  // Asks the children to stop, also children that start later. Returns true the first time. Never waits.
  bool request_stop() noexcept;
  // A token of the group's request to stop. Throws std::bad_alloc.
  [[nodiscard]] std::stop_token get_stop_token();

  // The number of children that have not ended. A hint if others spawn or end.
  [[nodiscard]] std::size_t size() const noexcept;
  // The number of children that have failed so far.
  [[nodiscard]] std::size_t failures() const noexcept;

 private:
  friend struct detail::group_access;
  friend detail::spawn_access;
  friend struct detail::coroutine_access;
  friend class detail::task_group_case;

  // Cancels the calling fiber at the first failure of a child, until the group ends.
  void interrupt_body_on_failure() noexcept;

  // A child's link in the list of its group, and its room under the limit. It is in the child's closure, so nothing is
  // allocated for it.
  class member : public detail::list_hook {
   public:
    // The caller has taken the room.
    explicit member(task_group& group) noexcept : group_(&group) {}
    member(member&& unlinked) noexcept : group_(std::exchange(unlinked.group_, nullptr)) {}
    member& operator=(member&&) = delete;
    ~member() {
      if (group_) group_->leave(*this);
    }

    [[nodiscard]] task_group& group() const noexcept { return *group_; }

    detail::task* who = nullptr;  // null until it is linked

   private:
    task_group* group_;  // null: moved from
  };

  // Members are destroyed in reverse order: first the function, last the link, after which the group may be destroyed.
  template <class F>
  struct child {
    member link;
    F function;

    decltype(auto) operator()() { return std::move(function)(); }
    void on_made(detail::task& made) noexcept {
      link.group().enter(link, made);
      if constexpr (requires { function.on_made(made); }) function.on_made(made);
    }
    void on_exception(detail::task&) noexcept { link.group().note_failure(link); }
  };

  template <class F>
  struct numbered {
    std::size_t number;
    [[no_unique_address]] F function;
    decltype(auto) operator()() { return std::invoke(std::move(function), number); }
  };

  static constexpr std::size_t most_at_once = INT32_MAX;
  [[noreturn]] static void refuse_batch(std::size_t count);
  static std::ptrdiff_t checked(std::size_t limit);
  [[nodiscard]] bool limited() const noexcept { return limited_; }
  void leave_room() noexcept {
    if (limited()) room_.release_one_of(PTRDIFF_MAX);
  }

  template <class F, class... A>
  auto start(const detail::task_options& options, F&& function, A&&... arguments) {
    if (limited()) room_.acquire(1, PTRDIFF_MAX, detail::no_deadline);
    return start_in_room(options, std::forward<F>(function), std::forward<A>(arguments)...);
  }
  template <class F>
  bool try_start(std::int64_t deadline, std::source_location where, F&& function) {
    if (limited() && !room_.acquire(1, PTRDIFF_MAX, deadline)) return false;
    start_in_room({.where = where}, std::forward<F>(function));
    return true;
  }
  // The caller has room under the limit, and gives it to the child.
  template <class F, class... A>
  auto start_in_room(const detail::task_options& options, F&& function, A&&... arguments) {
    member mine(*this);  // made first, so that any exception below gives the room back
    auto bound = detail::bind_once(std::forward<F>(function), std::forward<A>(arguments)...);
    return detail::spawn_in(detail::callers_runtime(), options,
                            child<decltype(bound)>{std::move(mine), std::move(bound)});
  }

  void enter(member& made, detail::task& who) noexcept;
  void leave(member& child) noexcept;
  void wake_stopped() noexcept;
  void interrupt_body() noexcept;
  void end_interrupt() noexcept;
  bool wait_until_ns(std::int64_t deadline);
  bool wait_for_children(std::int64_t deadline);
  void cancel_and_wait();
  void end_by_consequence();
  // Called in the catch block of an exception of the body of a scope.
  [[noreturn]] void leave_body();
  void stop_and_wait();
  void throw_failure(std::exception_ptr failure);
  std::exception_ptr take_failure(bool of_inherited_deadline_too) noexcept;
  void note_failure(member& failed) noexcept;

  // The first failure and its fiber. It is reported if no caller waits.
  struct failure {
    std::exception_ptr what;
    detail::fiber_identity whose;
    std::string name;
    std::shared_ptr<const std::function<void(const unhandled_exception&)>> reporter;
    bool inherited_deadline = false;  // not reported: the fiber that set the deadline meets it too
  };

  const on_error policy_;
  const bool limited_;                                               // whether spawn waits for room_
  const int uncaught_at_construction_ = std::uncaught_exceptions();  // with more at the end, an exception destroys it
  detail::semaphore_core room_;               // a permit for each further child, if there is a limit
  mutable detail::spin_lock lock_;            // guards the members below
  detail::wait_queue queue_;                  // who waits for the children's ends
  std::size_t size_ = 0;                      // the children that have not ended; each is in one of the two lists
  detail::intrusive_list<member> members_;    // those that a request to stop reaches next
  detail::intrusive_list<member> told_;       // those that have it in their tokens too, and those that have failed
  bool stop_ = false;                         // a stop was requested: later children start with it
  bool interrupted_ = false;                  // whether the body was
  detail::agent* body_ = nullptr;             // the fiber in the body of a scope, until the group ends
  std::stop_source token_{std::nostopstate};  // made by the first get_stop_token
  std::size_t failures_ = 0;                  // all failures, also the failures that are not kept
  failure first_;
};

namespace detail {

// For functions that start children in their own frame and wait for them. A refused wait must not leave this frame
// while children use it.
inline void check_may_wait_for_children() {
  agent& self = this_agent();
  if (!self.waits_forbidden) [[likely]]
    return;
  throw_if_stopped(self);  // a stop comes first
  throw_wait_forbidden(self, wait_kind::task_group);
}

}  // namespace detail

// What functions of the library do with a group. A friend, because clang 17 knows no constrained function as one.
struct detail::group_access {
  template <class F>
  static auto run_scope(F&& body) {
    static_assert(!is_coroutine<std::invoke_result_t<F, task_group&>>,
                  "scope would end before the coroutine runs: use co_scope");
    detail::check_may_wait_for_children();
    task_group group;
    group.interrupt_body_on_failure();
    const auto call_body = [&]() -> decltype(auto) {
      try {
        return std::invoke(std::forward<F>(body), group);
      } catch (...) {
        group.leave_body();
      }
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F, task_group&>>) {
      call_body();
      group.wait();
    } else {
      auto result = call_body();
      group.wait();
      return result;
    }
  }
};

// Calls body(task_group&), waits for the group, and returns the body's result. Throws the first failure of a child, or
// the exception of the body. In both cases the children were asked to stop and have ended. If a child has failed, its
// failure is thrown instead of channel_closed and std::future_error(broken_promise) of the body, because these only say
// that the other side has ended.
//
// The variables of the body end before its children: what children refer to must be declared outside of the body, or
// the body must end with group.wait().
//
// The failure of a child cancels its siblings and the body. The body's present and later cancellation points throw
// operation_cancelled, as after a request to stop. scope then throws the failure instead of operation_cancelled. The
// cancellation ends with the scope, or when a wait() of the body throws the failure: the body may handle it and go on.
// The body's stop token does not report it. A body on a plain thread, or under a shield, is not cancelled. At most 127
// nested scopes of a fiber may have such a failure at the same time. Under a no_suspend_scope, throws usage_error
// before it calls the body.
template <class F>
  requires std::is_invocable_v<F, task_group&>
auto scope(F&& body) {
  return detail::group_access::run_scope(std::forward<F>(body));
}

}  // namespace ulexite
