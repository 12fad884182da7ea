#pragma once

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <string_view>
#include <utility>

namespace ulexite {

namespace detail {
class strand;
struct context_access;

// Puts a task that is not published yet into a strand. Throws std::bad_alloc, and then frees the task.
void enter_strand(task& fresh, strand& into);
runtime_state& runtime_of(const strand& strand) noexcept;

template <class F, class... A>
auto spawn_in_strand(strand& into, const task_options& options, F&& function, A&&... arguments) {
  auto& made = make_task(runtime_of(into), bind_once(std::forward<F>(function), std::forward<A>(arguments)...));
  if (options.must_be_applied()) apply_options(made, options);
  made.where = options.where;
  enter_strand(made, into);
  publish(made);
  return handle_access::handle_of(made);
}
}  // namespace detail

// Runs its fibers one at a time. So data that only they share needs no lock, unless a fiber waits between two steps
// that belong together. A context has no thread of its own and costs some 200 bytes. So a program may have thousands:
// one for each session, document or interpreter. Its fibers run on any worker of the runtime, beside all other fibers.
// When one of them waits or yields, the next runs. It corresponds to Crystal's concurrent execution context, and to
// Asio's strand.
//
// A fiber that a member spawns is also a member, also through task_group and similar classes. Inside, parallel_for and
// the other parallel functions run on one worker. Inside, block_in_place is an ordinary call, which keeps the worker:
// use blocking() instead.
class concurrent_context : public spawn_interface<concurrent_context> {
 public:
  // Makes a context over the runtime of the calling fiber. Throws errc::no_runtime on a plain thread; std::bad_alloc.
  explicit concurrent_context(std::string_view name = {});
  // Makes a context over the given runtime, which must outlive it. Throws std::bad_alloc.
  explicit concurrent_context(runtime& over, std::string_view name = {});
  // Asks its fibers to stop, and waits until all have ended. Not a cancellation point. In one of its own fibers it does
  // not wait, reports this on stderr, and the fibers continue. Ends the process while another caller waits, or if it
  // would have to wait under a no_suspend_scope.
  ~concurrent_context();
  concurrent_context(const concurrent_context&) = delete;
  concurrent_context& operator=(const concurrent_context&) = delete;

  // Starts a fiber in the context. Any thread. Otherwise as ulexite::spawn. Throws usage_error after the shutdown of
  // the runtime.
  using spawn_interface::spawn;

  // Asks its fibers to stop, also fibers that are spawned later. Cannot be undone. Never waits. Any thread.
  void request_stop() noexcept;
  // Waits until the context has no fiber. Not a cancellation point. Throws usage_error in one of its own fibers, under
  // no_suspend_scope, or while another caller waits.
  void wait();
  // The name; valid as long as the context.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend struct detail::context_access;
  friend detail::spawn_access;

  template <class F, class... A>
  auto start(const detail::task_options& options, F&& function, A&&... arguments) {
    return detail::spawn_in_strand(strand_for_spawn(), options, std::forward<F>(function),
                                   std::forward<A>(arguments)...);
  }
  detail::strand& strand_for_spawn();
  void check_may_be_waited_for() const;  // throws as wait()

  detail::strand& strand_;
};

// For migrate_to and the C interface.
struct detail::context_access {
  static strand& strand_of(const concurrent_context& of) noexcept { return of.strand_; }
  static void check_may_be_waited_for(const concurrent_context& of) { of.check_may_be_waited_for(); }
};

namespace this_fiber {

// Moves the calling fiber into `context`, as if it had been spawned there. The fiber leaves its previous context. Waits
// for its turn. Not a cancellation point. Throws usage_error on a plain thread, in a job or stop callback, under
// no_suspend_scope, or if the context belongs to another runtime (see run_in); std::bad_alloc.
void migrate_to(concurrent_context& context);
// Takes the calling fiber out of its context. Does nothing if it is in none. Throws as above.
void migrate_to(runtime& runtime);

}  // namespace this_fiber

// Calls the function in a new fiber of `context`, and waits for its end. Returns its value or throws its exception. Not
// a cancellation point. Throws usage_error under a no_suspend_scope. `context` may be any context or runtime with a
// spawn, also one other than the caller's.
template <class Context, class F, class... A>
  requires detail::spawnable<F, A...>
decltype(auto) run_in(Context& context, F&& function, A&&... arguments) {
  detail::check_may_wait(detail::this_agent(), detail::wait_kind::join);  // before a fiber uses the caller's frame
  return context.spawn(fiber_options{}, std::forward<F>(function), std::forward<A>(arguments)...).get();
}

}  // namespace ulexite
