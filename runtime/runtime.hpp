#pragma once

#include <ulexite/runtime/dump.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/metrics.hpp>
#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/trace.hpp>

#include <atomic>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <utility>

namespace ulexite {

class runtime;
namespace detail {
class signal_dump;
class trace_file;
struct runtime_of_runs;
runtime_state& state_of(runtime& runtime) noexcept;
}  // namespace detail

// How a runtime ends.
enum class shutdown_mode {
  drain,   // waits until every fiber has ended, and asks none to stop
  cancel,  // asks every fiber to stop, then drains: waits are cancelled, running fibers continue to their next
           // cancellation point
  // Ends the workers at their next scheduling point, and abandons the fibers that have not ended. Objects at which they
  // wait can still be used, and skip them. Their stacks are kept for ever, and objects on these stacks are never
  // destroyed. So their locks, descriptors and counts of a wait_group stay taken. An unlock may have woken such a fiber
  // for a mutex. Then the mutex is free, but the waiters behind the fiber are woken only after the next lock and
  // unlock. Those behind such a fiber at a semaphore wait for the next release. The caller of shutdown destroys their
  // fiber_local values, and the functions of fibers that have not begun; these destructors may make it wait. Before
  // that it waits for the ends of calls of blocking() and block_in_place(). A call that waits for a fiber of the
  // runtime never ends.
  abandon,
  stop [[deprecated("use abandon")]] = abandon,  // the former name
};

// A set of worker threads and the fibers that run on them. A process may have several runtimes. The threads start as
// work appears. The thread that makes a runtime is not one of its workers.
class runtime : public spawn_interface<runtime> {
 public:
  // Makes a runtime. Throws std::invalid_argument that names an option and its value if it is out of range;
  // std::system_error if the system refuses a resource.
  explicit runtime(runtime_options options = {});
  // Calls shutdown(shutdown_mode::cancel), unless the runtime was shut down. In a fiber of this runtime, in a call that
  // it made by blocking, or, if it was made outside of all runtimes, in a context or runtime within it, it ends
  // nothing, because it would wait for its caller. It reports this on stderr, and fibers and threads continue until the
  // process ends. So std::exit in a fiber ends the process even if the runtime is a static object.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // Runs function(arguments...) as the main fiber and waits for its end. Returns its value or throws its exception.
  // Other fibers may still live then. One call at a time. A plain thread blocks, a fiber of another runtime is
  // suspended. In a job of another runtime, or a stop callback in its fibers, the wait ends the process. Throws
  // usage_error if another run is under way, in a fiber or job of this runtime, under a no_suspend_scope, and after
  // shutdown. Throws std::system_error if the system refuses the first thread or the first stack, with
  // errc::limit_reached above max_fibers, and with errc::deadlock (see runtime_options::on_deadlock); std::bad_alloc.
  template <class F, class... A>
    requires detail::spawnable<F, A...>
  [[gnu::always_inline]] auto run(F&& function, A&&... arguments) {
    return run_at(detail::spawn_place(detail::code_address()), std::forward<F>(function),
                  std::forward<A>(arguments)...);
  }

  // Starts a fiber. Any thread. Otherwise as ulexite::spawn. Throws usage_error after shutdown, and std::system_error
  // if the system refuses the first thread or the first stack. Must not be under way on a thread outside when shutdown
  // begins.
  using spawn_interface::spawn;

  // Makes jobs runnable. Any thread. Otherwise as ulexite::schedule. Throws as spawn. Must not be under way on a thread
  // outside when shutdown begins.
  void schedule(job& job);
  void schedule(job_list&& jobs);

  // Asks every fiber to stop, also fibers that are spawned later. Cannot be undone. Never waits. Any thread.
  void request_stop() noexcept;

  // Ends the runtime in the given way. Waits until every thread has ended, except threads that are in the system's
  // resolver for a cancelled caller. Returns the number of abandoned fibers, and reports them on stderr; only
  // shutdown_mode::abandon abandons fibers. Throws usage_error at a second call, in a fiber of this runtime, and in a
  // call that it made by blocking.
  std::size_t shutdown(shutdown_mode mode);

  // Changes the largest number of workers, from 1 to the larger of runtime_options::threads and max_threads. No fiber
  // is lost. A surplus worker leaves its fibers to the others at its next scheduling point, and its thread sleeps until
  // it is needed again. An idle worker leaves before one that runs a long computation, so fibers may wait for the end
  // of that computation. More workers start as work appears. Never waits. Any thread. Throws std::invalid_argument with
  // the bounds, usage_error after shutdown and in a deterministic run.
  void resize(std::size_t threads);

  // Returns a snapshot of the counters. Any thread.
  [[nodiscard]] runtime_metrics metrics() const noexcept;
  // How long fibers waited for a worker, and ran, as far as that was measured: with runtime_options::measure, and while
  // a trace was recorded. Any thread.
  [[nodiscard]] runtime_times times() const noexcept;

  // Records the events of each worker from now on. They are: the fiber that runs, how it left and what it waited for,
  // wakes between fibers, steals, sleep, trace_span. It costs some 150 instructions a dispatch. Any thread. Throws
  // usage_error if a trace is being recorded already, or after shutdown; std::invalid_argument for too many events;
  // std::bad_alloc.
  void start_trace(const trace_options& options = {});
  // Ends the recording, if there is one. Any thread.
  void stop_trace() noexcept;
  // Writes the present or last recording as JSON for ui.perfetto.dev and chrome://tracing. It has a track for each
  // worker, a slice for each run of a fiber, and arrows from wakers to woken fibers. A run that began before the
  // recording is missing. Any thread. Throws usage_error if
  // nothing was ever recorded, std::bad_alloc, and exceptions of `out`.
  void write_trace(std::ostream& out) const;

  // Writes the counters in the text format of Prometheus, with the counters of each worker, and the times if some were
  // measured. It also counts the waiting fibers by reason, which takes some 0.1 us for each fiber. Otherwise as dump.
  void write_prometheus(std::ostream& out, const prometheus_options& options = {}) const;

  // Writes the state of the workers and of every fiber: its wait and the wait's duration, the place of its spawn, its
  // backtrace. Fibers at one place form a group; the oldest waits come first. It names fibers that wait for each other
  // in a circle, and holders of a mutex that wait themselves. It stops no fiber. It reads the fibers in batches of
  // some hundred; a worker that wants to run a fiber waits for the end of one batch, some tenths of a millisecond. Any
  // thread and any fiber. Throws usage_error after shutdown, std::bad_alloc, and exceptions of `out`.
  void dump(std::ostream& out, const dump_options& options = {}) const;
  // Writes a dump as one line of JSON. Otherwise as dump.
  void dump_json(std::ostream& out, const dump_options& options = {}) const;

 private:
  friend detail::runtime_state& detail::state_of(runtime& runtime) noexcept;
  friend detail::spawn_access;
  friend class parallel_context;
  friend detail::runtime_of_runs;  // makes and ends the runtime of deterministic runs (testing/world.cpp)

  class main_run {
   public:
    explicit main_run(runtime& runtime);
    ~main_run();
    main_run(const main_run&) = delete;
    main_run& operator=(const main_run&) = delete;

    void wait_for(detail::task& task) const;

    detail::runtime_state& rt;  // stays when a fiber ends the process, and so destroys the runtime
  };

  template <class F, class... A>
  auto run_at(detail::spawn_place where, F&& function, A&&... arguments) {
    const main_run this_run(*this);
    auto& task = detail::spawn_task(this_run.rt, {.name = "main", .where = where},
                                    detail::bind_once(std::forward<F>(function), std::forward<A>(arguments)...));
    auto handle = detail::handle_access::handle_of(task);
    this_run.wait_for(task);
    return handle.get();
  }

  template <class F, class... A>
  auto start(const detail::task_options& options, F&& function, A&&... arguments) {
    return detail::spawn_in(state_for_outside_call("spawn"), options, std::forward<F>(function),
                            std::forward<A>(arguments)...);
  }

  // Only the state: no thread that inspects it, no file, nothing that the environment asks for.
  explicit runtime(std::unique_ptr<detail::runtime_state> bare) noexcept;
  detail::runtime_state& state_for_outside_call(const char* operation);
  void check_outside(const char* operation) const;
  void check_alive(const char* operation) const;
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }  // hint

  std::unique_ptr<detail::runtime_state> state_;
  std::unique_ptr<detail::signal_dump> signal_dump_;
  std::unique_ptr<detail::trace_file> trace_file_;
  // State: shutdown has begun, or has waited for the fibers. Set once by the caller that does it, hints to others.
  std::atomic<bool> ended_{false}, quiet_{false};
};

// The runtime of the calling fiber, job or isolated_context, for its metrics, dumps and traces. It lives at least as
// long as the caller. Throws errc::no_runtime elsewhere.
[[nodiscard]] runtime& current_runtime();

// Whether the caller is a fiber.
[[nodiscard]] bool in_fiber() noexcept;

// Runs function(arguments...) as the main fiber of a new runtime with default options. Then ends the runtime, which
// cancels the remaining fibers. Returns the function's value or throws its exception. Throws usage_error inside a
// fiber.
template <class F, class... A>
  requires detail::spawnable<F, A...>
[[gnu::always_inline]] inline auto run(F&& function, A&&... arguments) {
  if (in_fiber()) throw usage_error("ulexite::run was called inside a fiber");
  return runtime().run(std::forward<F>(function), std::forward<A>(arguments)...);
}

}  // namespace ulexite
