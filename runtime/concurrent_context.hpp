#pragma once

#include <ulexite/runtime/runtime.hpp>

#include <source_location>
#include <string_view>
#include <utility>

namespace ulexite {

namespace detail {
class strand;

// Makes a task that is not published a member. Throws std::bad_alloc, and then frees the task.
void enter_strand(task& fresh, strand& into);
runtime_state& home_of(const strand& strand) noexcept;

template <class F, class... A>
auto spawn_in_strand(strand& into, const task_options& options, F&& function, A&&... arguments) {
  auto& made = make_task(home_of(into), bind_once(std::forward<F>(function), std::forward<A>(arguments)...));
  if (!options.name.empty() || options.stack_size != 0) apply_options(made, options);
  made.where = options.where;
  enter_strand(made, into);
  publish(made);
  return join_handle(made);
}
}  // namespace detail

// Fibers of which never two run at the same time: what only they share needs no lock, as long as none of them waits
// between two steps that belong together. It has no thread of its own and costs some 200 bytes, so a program may have
// thousands: one for each session, document or interpreter. Its fibers run on any worker of the runtime, beside all
// others; when one of them waits or yields, the next goes on. Crystal's concurrent execution context, and Asio's strand
// for fibers.
//
// What a fiber of the context spawns belongs to it too, also through task_group and the like. parallel_for and its kin
// run on one worker inside. block_in_place is an ordinary call there: it keeps the worker. Use blocking() instead.
class concurrent_context {
 public:
  // Over the runtime of the calling fiber. Throws errc::no_runtime outside one; std::bad_alloc.
  explicit concurrent_context(std::string_view name = {});
  // Over that runtime, which must outlive it.
  explicit concurrent_context(runtime& over, std::string_view name = {});
  // Asks its fibers to stop, and waits until all have ended. Not a cancellation point. In one of its own fibers it does
  // not wait, and says so on stderr: they run on.
  ~concurrent_context();
  concurrent_context(const concurrent_context&) = delete;
  concurrent_context& operator=(const concurrent_context&) = delete;

  // Starts a fiber in it, from any thread. Like ulexite::spawn otherwise.
  template <detail::spawnable F>
  auto spawn(F&& function, std::source_location where = std::source_location::current()) {
    return detail::spawn_in_strand(strand_for_spawn(), {.where = where}, std::forward<F>(function));
  }
  template <class F, class... A>
    requires(sizeof...(A) > 0 && detail::spawnable<F, A...>)
  [[gnu::always_inline]] auto spawn(F&& function, A&&... arguments) {
    const detail::spawn_place where(detail::code_address());
    return detail::spawn_in_strand(strand_for_spawn(), {.where = where}, std::forward<F>(function),
                                   std::forward<A>(arguments)...);
  }
  template <class F, class... A>
    requires detail::spawnable<F, A...>
  auto spawn(const fiber_options& options, F&& function, A&&... arguments) {
    return detail::spawn_in_strand(strand_for_spawn(), detail::to_task_options(options), std::forward<F>(function),
                                   std::forward<A>(arguments)...);
  }

  // Asks its fibers to stop, those spawned later too. Sticky. Never waits. Any thread.
  void request_stop() noexcept;
  // Waits until it has no fiber. Not a cancellation point. Throws usage_error in one of its own fibers, or while
  // another waits.
  void wait();
  // Valid as long as the context.
  [[nodiscard]] std::string_view name() const noexcept;

  // The library's own: what a spawn is made in.
  detail::strand& strand_for_spawn();

 private:
  friend void migrate(concurrent_context& into);

  detail::strand& strand_;
};

namespace this_fiber {

// The calling fiber goes on in that context, as if it had been spawned there. It leaves the one it was in. Waits for
// its turn; not a cancellation point. Throws usage_error on a plain thread or if the context is of another runtime, for
// which see run_in; std::bad_alloc.
void migrate_to(concurrent_context& context);
// The same to the runtime itself: it leaves its context. Nothing if it is in none.
void migrate_to(runtime& runtime);

}  // namespace this_fiber

// Calls the function in that context, in a fiber of its own, and waits for it; its value or exception comes back. Not a
// cancellation point. For any context or runtime with a spawn, also another than the caller's.
template <class Context, class F, class... A>
  requires detail::spawnable<F, A...>
decltype(auto) run_in(Context& context, F&& function, A&&... arguments) {
  return context.spawn(fiber_options{}, std::forward<F>(function), std::forward<A>(arguments)...).get();
}

}  // namespace ulexite
