#pragma once

// What the workers of one runtime share. The public class runtime is its handle.
//
// Pairings
//   A  whoever has given a block to a new fiber: light fence, loads stop_requested_ (inherit, in task.cpp)  ->
//      request_stop: stores stop_requested_, heavy fence, asks every block's fiber. One of them asks the new fiber.
//   B  call_for sets a bit of attention_ before the parker's mutex is taken  ->  a worker that has left its sleep, and so
//      held that mutex later, loads it: sees the bit. And: call_off clears it, release  ->  the worker that finds it
//      clear, acquire, comes after all that was done while it was set.

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/metrics.hpp>
#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/park/parker.hpp>
#include <ulexite/runtime/queue/inject_queue.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/threads/inherited_thread_state.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace ulexite {
class runtime;
}

namespace ulexite::detail {

class event_loop;

// The recording of all workers.
struct trace_state {
  std::mutex turn;  // guards the rest
  bool on = false;
  std::vector<std::unique_ptr<recorder>> recorders;  // of all traces, the last one's at the end, one for each worker
  std::uint64_t first_ticks = 0;                     // at the start of the last one
  std::int64_t first_time = 0;
};

// What each worker must see to before it runs the next fiber, as bits.
enum class attention : unsigned {
  end = 1,
  halt = 2,     // the world is being stopped, or is
  surplus = 4,  // there may be too many workers
};

// A fiber that did not come to a scheduling point when the world was to be stopped.
struct late_fiber {
  std::uint64_t id = 0;  // 0: a worker between two
  std::string name;
  spawn_place where;
  std::size_t worker = 0;
};

// Who stands still while the world is stopped.
struct world_stop {
  std::atomic<bool> taken{false};  // one stops it at a time
  std::mutex mutex;                // guards the rest; taken after the parker's
  bool halting = false;
  std::condition_variable changed, over;
  std::vector<bool> stands;  // by worker
  std::size_t standing = 0;
};

class runtime_state {
 public:
  explicit runtime_state(runtime_options options);
  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;

  // Sees to it that what is published can run: the machine has given a worker, and stacks. Throws std::system_error
  // when it refuses the first of either. A thread outside, before it publishes.
  void ensure_worker();

  // Publishing runnables. Any thread.
  void inject(job& runnable, turn which = turn::ordinary) noexcept;
  void inject(intrusive_queue<job>& runnables, turn which = turn::ordinary) noexcept;
  // Makes a fiber runnable whose wait the caller has claimed. It may have been abandoned since, and its runtime be
  // gone.
  static void resume_from_outside(task& fiber) noexcept;

  // Counting fibers; `here` is the calling worker, if it is one of this runtime.
  void count_spawn(scheduler* here) {
    if (!here || counts_live()) return count_spawn_slow(here);
    here->counters().spawned.add();
  }
  void count_end(scheduler* here) noexcept {
    if (!here || counts_live()) return count_end_slow(here);
    here->counters().ended.add();
  }
  // Are those that live counted, for a limit?
  [[nodiscard]] bool counts_live() const noexcept { return options.max_fibers != 0; }
  [[nodiscard]] std::size_t live() const noexcept;

  // Asks all fibers to stop, now and in future. Any thread.
  void request_stop() noexcept;
  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_requested_.load(std::memory_order_relaxed);  // ordered by A's fence
  }

  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }

  // Is there something that each worker must see to before it runs the next fiber? With one load for all.
  [[nodiscard]] bool wants_attention() const noexcept {
    return attention_.load(std::memory_order_acquire) != 0;  // B
  }
  // Must the workers end, whatever there is to run? A hint: parking decides for those that have nothing to run.
  [[nodiscard]] bool ending() const noexcept { return wants(attention::end); }
  [[nodiscard]] bool wants(attention what) const noexcept {
    return (attention_.load(std::memory_order_relaxed) & static_cast<unsigned>(what)) != 0;  // hint
  }
  void call_for(attention what) noexcept;
  void call_off(attention what) noexcept;

  // Changes how many workers there may be, from 1 to `workers`. Never waits. Any thread.
  void resize(std::size_t to) noexcept;
  // As many as the control groups of a process grant, but no more than at the start. See quota_processors, and throws
  // what it throws.
  void follow_quota(const std::string& process);
  // A worker of which there are too many waits until it is wanted again. False: it must end. Its own thread.
  [[nodiscard]] bool wait_on_bench(worker_slot& surplus) noexcept;

  // Brings every worker but the caller's to its main stack, so that no fiber runs. False, and nothing is stopped, if
  // `deadline` is over first: then `late` has the fibers that did not come. Throws usage_error while another does so,
  // std::bad_alloc.
  [[nodiscard]] bool stop_world(std::int64_t deadline, std::vector<late_fiber>& late);
  void start_world() noexcept;
  // A worker's, while the world is stopped.
  void stand_still(scheduler& worker) noexcept;

  // The monitor's duty while the calling plain thread waits for `task`, or for every fiber.
  void watch_until_done(task& task) noexcept;
  void watch_until_quiet() noexcept;
  // Somebody must do that duty while fibers run that no such thread waits for.
  void ensure_monitor() noexcept;

  // Ends all workers at their next scheduling point, and joins them. Returns how many fibers are left unfinished: these
  // are never resumed, and what stands on their stacks is never destroyed. A plain thread, last of all.
  std::size_t stop_workers() noexcept;

  // After stop_workers: ends what is left, without running it. Returns how many fibers that were.
  std::size_t abandon_all() noexcept;

  [[nodiscard]] runtime_metrics metrics() const noexcept;
  // The user has decided how many workers there may be: the quota counts no longer.
  void forget_quota() noexcept { was_resized_.store(true, std::memory_order_relaxed); }  // hint

  // Makes the calling thread the worker of that number, until it is told to end or leaves that to another thread.
  // Returns a fiber that is to be made runnable, or null.
  task* be_worker(std::size_t index) noexcept;

  // How many of the process's threads are this runtime's, with the caller, if nothing in it can happen by itself but the
  // end of waits: all workers sleep, and nothing is or is being made runnable. Else 0. A thread that is no worker.
  [[nodiscard]] std::size_t threads_if_quiet() noexcept;
  // Called by the monitor when nothing has happened for a while: once until something happens.
  void (*when_quiet)(runtime_state&) = nullptr;
  std::atomic<bool> deadlocked{false};  // and its fibers were asked to stop for that

  // For the parker, see parker.hpp.
  [[nodiscard]] bool any_work() const noexcept;
  [[nodiscard]] static bool has_work_for(const worker_slot& worker_slot) noexcept {
    return static_cast<const scheduler&>(worker_slot).has_pinned();
  }
  [[nodiscard]] static bool may_retire(const worker_slot& worker_slot) noexcept {
    return !static_cast<const scheduler&>(worker_slot).has_pins();
  }
  void put_on_bench(worker_slot& surplus) noexcept;
  void surplus_changed(bool some) noexcept;
  void sleep_in_loop(worker_slot& worker_slot) noexcept;
  void wake_loop() noexcept;
  [[nodiscard]] bool start_worker() noexcept;
  [[nodiscard]] bool starts_suspended() const noexcept;
  void all_asleep() noexcept;
  void some_awake() noexcept;

  runtime* handle = nullptr;  // null in tests without one
  const runtime_options options;
  const std::size_t workers;
  const bool crowded;  // more workers than processors: a spinning one keeps another from running
  const inherited_thread_state inherited_state;
  stack_pool& stacks;
  const std::shared_ptr<event_loop> loop;  // shared with the sockets registered in it, which may outlive the runtime
  struct retirement {
    void operator()(task_pool* pool) const noexcept { pool->retire(); }
  };
  const std::unique_ptr<task_pool, retirement> owned_tasks;
  task_pool& tasks;
  const std::shared_ptr<blocking_pool> blocking;  // shared with its threads
  inject_queue injected;
  inject_queue starved;  // what the machine refused a stack: the monitor has it try again
  detail::parker<runtime_state> parker;
  std::vector<std::unique_ptr<scheduler>> schedulers;
  std::atomic<bool> running_main{false};  // run() is under way
  trace_state trace;
  world_stop world;
  std::mutex inspecting;  // held while fibers are looked at, see inspection.hpp

 private:
  void count_spawn_slow(scheduler* here);
  void count_end_slow(scheduler* here) noexcept;
  void call_start_hook(std::size_t index);
  [[nodiscard]] std::vector<late_fiber> those_running(const scheduler* but);
  [[nodiscard]] std::size_t queued() const noexcept;
  void look_at_quota(std::int64_t now) noexcept;

  // The monitor: sees to what no worker can see to itself. One thread at a time.
  class monitor_turn;
  void tick() noexcept;
  void relieve_hogs() noexcept;
  void rescue() noexcept;
  void retry_starved() noexcept;
  [[nodiscard]] std::int64_t next_tick(thread_agent& self) noexcept;
  void monitor_main() noexcept;
  void forget_monitor(thread_agent& self) noexcept;

  std::atomic<bool> stop_requested_{false};
  std::stop_source stop_source_;                  // for the fibers' tokens
  std::atomic<unsigned> attention_{0};            // bits of attention
  std::atomic<std::size_t> live_limit_count_{0};  // only counted when there is a limit
  std::atomic<std::uint64_t> spawned_outside_{0}, ended_outside_{0};
  std::atomic<std::uint64_t> wakes_{0}, starts_refused_{0}, hogs_relieved_{0}, polls_rescued_{0}, rescued_{0};
  std::atomic<std::int64_t> starts_refused_until_{0};

  std::mutex first_start_;               // taken before the parker's: one thread tries, the others wait for it
  std::error_code first_start_refused_;  // why; guarded by first_start_
  std::atomic<bool> has_worker_{false};
  std::atomic<std::size_t> in_hooks_{0};    // workers whose on_thread_start has not returned
  std::vector<std::thread> threads_;        // guarded by the parker's mutex
  std::vector<worker_slot*> bench_;         // surplus workers, with room for all; guarded by the parker's mutex
  std::size_t threads_started_ = 0;         // guarded by the parker's mutex
  thread_agent* monitor_asleep_ = nullptr;  // sleeps until a worker awakes; guarded by the parker's mutex
  thread_agent* quiet_waiter_ = nullptr;    // wants to know when all sleep; guarded by the parker's mutex
  std::atomic<bool> monitored_{false};
  std::thread monitor_thread_;
  bool monitor_stop_ = false;  // guarded by the parker's mutex
  thread_agent* monitor_agent_ = nullptr;

  const std::size_t first_limit_;         // of workers, before any resize
  const bool quota_counts_;               // the number of workers was left to the machine
  std::atomic<bool> was_resized_{false};  // by the user, who then decides

  // the monitor's own
  std::int64_t last_quota_ = now_ns();
  std::int64_t last_busy_ = 0;  // the last tick at which something had happened
  bool asked_ = false;          // when_quiet, since then
  unsigned quiet_ticks_ = 0, lost_ticks_ = 0, trims_left_ = 0;
  std::uint64_t seen_wakes_ = ~std::uint64_t{0};  // the first tick finds that something has happened
  std::int64_t last_trim_ = 0;
  std::vector<std::uint64_t> seen_dispatches_;
};

}  // namespace ulexite::detail
