#pragma once

// The state that the workers of one runtime share. The public class runtime is its handle.
//
// State, each part with its State block
//   injected     the queue that all workers share, see inject_queue.hpp.
//   parker       which workers sleep, see parker.hpp.
//   threads      worker_threads.hpp.        fibers      fiber_counts.hpp.
//   monitor      monitor.hpp.               trace       recorder.hpp.
//   world        world_stop.hpp.
//   schedulers   made at the start, and never changed; scheduler.hpp.
//   quiet_waiter_   guarded by the parker's mutex.

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/metrics.hpp>
#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/park/parker.hpp>
#include <ulexite/runtime/queue/inject_queue.hpp>
#include <ulexite/runtime/task/fiber_counts.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/trace/recorder.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/monitor.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/worker_threads.hpp>
#include <ulexite/runtime/worker/world_stop.hpp>
#include <ulexite/runtime/worker_parts/brief_call.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace ulexite {
class runtime;
}

namespace ulexite::detail {

class event_loop;

// The state of the public class runtime.
//
// State
//   running_main   run() is under way. It serialises the calls.
//   deadlocked     the fibers were asked to stop because none of them could continue. Set once, by the monitor.
//
// Pairings
//   A  the end of a run stores running_main, release  ->  the next run exchanges it, acquire.
struct runtime_handle {
  runtime* object = nullptr;  // null in tests without one
  std::uint64_t number = 0;   // of all runtimes of the process, from 1
  std::uint64_t around = 0;   // the outermost runtime in whose fibers and contexts this one was made; 0: none
  bool named_in_run = false;  // a fiber of a deterministic run has asked for the object, and may have changed it
  std::atomic<bool> running_main{false};
  std::atomic<bool> deadlocked{false};
};

class runtime_state {
 public:
  explicit runtime_state(runtime_options options);
  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;

  // Publishing runnables. Any thread.
  void inject(job& runnable, priority which = priority::ordinary) noexcept;
  void inject(intrusive_queue<job>& runnables, priority which = priority::ordinary) noexcept;
  // Makes a fiber runnable after the caller has claimed its wait. The fiber may have been abandoned, and its runtime
  // destroyed, since then.
  static void resume_from_outside(task& fiber) noexcept;

  // Counting fibers; `here` is the calling worker, if it is one of this runtime. The first throws errc::limit_reached,
  // and usage_error after the end.
  void count_spawn(scheduler* here);
  void count_end(scheduler* here) noexcept;
  // How many fibers live.
  [[nodiscard]] std::size_t live() const noexcept;

  // Asks all fibers to stop, now and in future. Any thread.
  void request_stop() noexcept;

  // Changes how many workers may be awake, from 1 to threads.most(). Never waits. Any thread.
  void resize(std::size_t to) noexcept;

  // Brings every worker except the caller's to its main stack, so that no fiber runs. False, and nothing is stopped, if
  // `deadline` is over first. Then `late` has the fibers that were still running. Throws usage_error while another does
  // so, std::bad_alloc.
  [[nodiscard]] bool stop_world(std::int64_t deadline, std::vector<late_fiber>& late);
  void start_world() noexcept;
  // Called by each worker; it waits while the world is stopped.
  void wait_while_stopped(scheduler& worker) noexcept;

  // Ends all workers at their next safepoint, and joins them. Then ends the unfinished fibers without running
  // them, and returns their number. Objects on their stacks are never destroyed. Called last, by a plain thread.
  std::size_t end_workers() noexcept;

  // Whether the workers must end: from some moment of end_workers on. Exact with the parker's mutex held, otherwise a
  // hint.
  [[nodiscard]] bool is_ending() const noexcept { return schedulers.front()->asked(request::end); }

  [[nodiscard]] runtime_metrics metrics() const noexcept;
  // How many are in the queues of the workers, and in the shared one: a hint.
  [[nodiscard]] std::size_t queued() const noexcept;
  // The number of this runtime's threads, if the runtime is quiet; otherwise 0. It is quiet if all workers sleep, and
  // nothing is runnable or is being made runnable. Then only the end of a wait can change it. Called by the monitor.
  [[nodiscard]] std::size_t threads_if_quiet() noexcept;
  // Blocks the calling thread until the runtime is quiet, and no fiber lives.
  void wait_until_quiet() noexcept;

  // For the parker, see parker.hpp.
  [[nodiscard]] bool any_work() const noexcept;
  [[nodiscard]] static bool has_work_for(const worker_slot& worker_slot) noexcept {
    const run_queues& own = static_cast<const scheduler&>(worker_slot).queues;
    return own.has_pinned() || own.has_slot();  // the slot is filled by a wake in the user's idle hook
  }
  void sleep_in_loop(worker_slot& worker_slot) noexcept;
  void wake_loop() noexcept;
  [[nodiscard]] bool start_worker() noexcept { return threads.start(); }
  [[nodiscard]] bool starts_suspended() const noexcept { return threads.starts_suspended(); }
  [[nodiscard]] std::uint32_t in_hooks() const noexcept { return threads.in_hooks(); }
  void on_all_asleep() noexcept {
    if (quiet_waiter_) quiet_waiter_->resume();  // it checks again, so once too often does no harm
  }
  void on_worker_awake() noexcept { monitor.on_wake(); }

  struct shut_pool {
    void operator()(task_pool* pool) const noexcept { pool->shut(); }
  };

  const runtime_options options;
  worker_threads threads;
  stack_pool& stacks;                      // of the default size
  const std::shared_ptr<event_loop> loop;  // shared with the sockets registered in it, which may outlive the runtime
  const std::unique_ptr<task_pool, shut_pool> tasks;
  const std::shared_ptr<blocking_pool> blocking;  // shared with its threads
  inject_queue injected;
  detail::parker<runtime_state> parker;
  std::vector<std::unique_ptr<scheduler>> schedulers;
  fiber_counts fibers;
  detail::monitor monitor;
  trace_state trace;
  world_stop world;
  detail::brief_calls brief_calls;
  runtime_handle handle;

 private:
  std::size_t abandon_all() noexcept;
  [[nodiscard]] bool is_quiet() const noexcept;
  [[nodiscard]] std::vector<late_fiber> find_late_fibers(const scheduler* except);

  thread_agent* quiet_waiter_ = nullptr;
};

// The runtime that the calling thread belongs to; null on a thread outside.
const runtime_state* runtime_of_caller() noexcept;
// Whether the calling thread belongs to this runtime, or to a context that a fiber made within it, directly or not, if
// it is in no other. Then a fiber may wait for the caller.
bool is_on_thread_within(const runtime_state& rt) noexcept;

}  // namespace ulexite::detail
