#pragma once

#include <ulexite/runtime/runtime.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite {

// Separate workers beside those of the calling fiber's runtime. Use it for work that must not wait for other work: for
// example, one pool for requests and one for reports. A fiber in it spawns into it. Channels and all other objects work
// across contexts. It is a runtime with a name, which a fiber can make and end; its threads have the name. It
// corresponds to Crystal's parallel execution context.
class parallel_context : public spawn_interface<parallel_context> {
 public:
  // Makes a context with at most `threads` workers (0: as runtime_options::threads). resize may raise the number up to
  // `max_threads`; if that is 0, up to `threads` or the machine's processors. Throws as runtime's constructor.
  explicit parallel_context(std::string_view name, std::size_t threads = 0, std::size_t max_threads = 0);
  // Asks its fibers to stop, waits until all have ended, and ends its threads. Waits as a call in block_in_place:
  // another thread runs the caller's worker meanwhile. In a concurrent_context, in a job, under a no_suspend_scope, or
  // with a no_migration_scope on the worker, it blocks the worker. Not a cancellation point. In one of its own fibers
  // it ends nothing, and reports this on stderr.
  ~parallel_context();
  parallel_context(const parallel_context&) = delete;
  parallel_context& operator=(const parallel_context&) = delete;

  // Starts a fiber in the context, as runtime::spawn. Any thread.
  using spawn_interface::spawn;

  // Changes the number of workers, see runtime::resize.
  void resize(std::size_t threads) { runtime_.resize(threads); }
  // Asks its fibers to stop, also fibers that are spawned later. Cannot be undone. Never waits. Any thread.
  void request_stop() noexcept { runtime_.request_stop(); }
  // The name; valid as long as the context.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  // The context as a runtime, for its metrics and dumps.
  [[nodiscard]] ulexite::runtime& runtime() noexcept { return runtime_; }

 private:
  friend detail::spawn_access;
  template <class F, class... A>
  auto start(const detail::task_options& options, F&& function, A&&... arguments) {
    return detail::spawn_access::start(runtime_, options, std::forward<F>(function), std::forward<A>(arguments)...);
  }

  const std::string name_;
  ulexite::runtime runtime_;
};

}  // namespace ulexite
