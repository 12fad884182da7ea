#pragma once

// One worker's part of the runtime: the switch from fiber to fiber, and the loop on the thread's own stack. The loop
// takes own work, steals, polls and parks. Its queues, its policies and its caches are separate classes, which do not
// know each other. docs/scheduler.md describes the whole.
//
// State shared with other threads, each part with its State block
//   queues         run_queues.hpp.
//   wake_policy_   wake_policy.hpp.
//   thefts_        the number of thefts from this worker. Counted by thieves, a hint for the owner.
//   handoff_work_  its part handoff_offer.hpp.
//   forks_         fork_queue.hpp; the requests to this worker: interrupts.hpp.
//   activity       worker_activity.hpp.
// The base worker_slot belongs to the parker, see parker.hpp. All else is the owner's.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/fork/fork_queue.hpp>
#include <ulexite/runtime/park/parker.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/threads/handoff_offer.hpp>
#include <ulexite/runtime/trace/recorder.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>
#include <ulexite/runtime/worker_parts/maintenance_pace.hpp>
#include <ulexite/runtime/worker_parts/run_queues.hpp>
#include <ulexite/runtime/worker_parts/stack_cache.hpp>
#include <ulexite/runtime/worker_parts/switch_state.hpp>
#include <ulexite/runtime/worker_parts/victims.hpp>
#include <ulexite/runtime/worker_parts/wake_policy.hpp>
#include <ulexite/runtime/worker_parts/worker_activity.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class controlled_run;
class controller;
class runtime_state;
class stackless_wait;
enum class departure : bool;
struct own_thread;
struct event;

using worker_slot = basic_worker_slot<std_parking>;

// Whether every fiber changes its worker whenever it can. For tests.
#ifdef ULEXITE_DEBUG_MIGRATE
inline constexpr bool migrating = true;
#else
inline constexpr bool migrating = false;
#endif

class alignas(cache_line) scheduler : public switch_thread, public worker_slot {
 public:
  scheduler(runtime_state& rt, std::size_t index);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // The worker's life on the calling thread. It ends with the runtime, or after the thread has given the worker to
  // another thread (begin_handoff) and the call of that fiber has ended. Then it returns this fiber, which the caller
  // must make runnable.
  task* run() noexcept;
  // The same in a deterministic run, on the calling thread, until nothing can run.
  void run_controlled(controller& by) noexcept;
  [[nodiscard]] bool is_controlled() const noexcept { return controlled_ != nullptr; }
  // Returns the stacks that this worker keeps for its next fibers. Owner only; after the last run, the
  // thread that ends the runtime.
  void give_stacks_back() noexcept { stacks_.give_back(); }

  // Owner only, below.

  [[nodiscard]] task* running() const noexcept { return current_.fiber(); }
  // The agent of the running fiber, or that of a job or of the loop.
  [[nodiscard]] const agent& running_agent() noexcept { return *current_.execution().agent; }
  [[nodiscard]] runtime_state& runtime() const noexcept { return runtime_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  task_pool::cache& blocks() noexcept { return spawn_cache_.blocks; }
  // A number for a new fiber, unique in the process.
  [[nodiscard]] std::uint64_t next_id() noexcept;
  // The first of `count` such numbers that no other caller gets. Any thread.
  static std::uint64_t reserve_ids(std::uint64_t count) noexcept;
  // Whether a spawn has nothing to do but to take the number at hand.
  [[nodiscard]] bool spawns_fast() const noexcept { return spawn_cache_.has_ids() && !forks_.interrupts.at_spawn(); }
  [[nodiscard]] std::uint64_t id_at_hand() noexcept { return spawn_cache_.next_id++; }

  // Makes new runnables wait their turn in this worker's queue, or a fiber that was woken run next.
  void add(job& runnable) noexcept {
    perturb();
    if (migrating || !queues.push(runnable)) [[unlikely]]
      return enqueue_slow(runnable);
    notify_others_after_publishing();
  }
  void add_job(job& job) noexcept;
  void add(intrusive_queue<job>& batch) noexcept;
  void wake(task& woken) noexcept;
  // The same for a fiber to which a lock was handed.
  void wake_holder(task& woken) noexcept;

  // Whether the events here are being recorded.
  [[nodiscard]] bool traced() const noexcept { return noted(request::traced); }
  void record(trace_kind kind, std::uint64_t value = 0, std::uint8_t detail = 0) noexcept;

  // The running job continues as a fiber. Throws errc::limit_reached, std::bad_alloc.
  void make_fiber_of_job();

  // Leaves the running fiber until another thread or fiber resumes it. Completes its wait (see suspend.hpp) after the
  // switch, releasing `held` if there is one.
  wake_reason switch_to_next(spin_lock* held, bool prepared, wait_mode mode) noexcept;
  // The running fiber is a coroutine that waits. It needs its stack no longer, on which the caller goes on.
  void leave_stack(task& self, stackless_wait& wait) noexcept;
  // Lets other fibers of this worker run.
  void yield() noexcept;
  // As yield. Called when a fiber has done much without waiting. It changes places with a fiber that it has woken.
  void yield_to_woken() noexcept;
  // The running fiber has done some more operations without a wait: true when it should yield.
  [[nodiscard]] bool budget_is_spent() noexcept;
  // The present thread, for the running fiber to keep in a hand-off.
  [[nodiscard]] own_thread this_thread() noexcept;
  // Gives this worker, with all its queues, to another thread. The running fiber continues on the present thread, which
  // is a plain one until end_handoff. False: there is no thread for the worker, and nothing has changed.
  [[nodiscard]] bool begin_handoff(own_thread& own) noexcept;
  static void end_handoff(own_thread& own) noexcept;
  // The same for a call that is brief as a rule (brief_call.hpp): another thread takes the worker only if it lasts.
  // The fiber stays the running one, in case that it withdraws the offer.
  void offer_handoff(own_thread& own) noexcept { handoff_work_.offer.make(own); }
  [[nodiscard]] bool withdraw_offer(own_thread& own) noexcept { return handoff_work_.offer.withdraw(own); }

  // A bound fiber is a member of a strand, or pinned to its worker. A job runs it, and gets back control each time
  // the fiber leaves its stack. While it is runnable its `run` is set, so the queues treat it as that job. The paths of
  // other fibers do not test for it. While it runs, this worker's main stack is the job's, and each switch goes there.
  // Such a fiber offers no forks, and its worker is not handed to another thread.
  void run_bound(task& member) noexcept;
  // The `run` of such a fiber while it is runnable.
  static void dispatch_bound(job* member) noexcept;
  [[nodiscard]] bool is_bound() const noexcept { return noted(request::bound); }
  // Makes the running fiber a bound one, or renews what it is bound to. Returns on the worker that then has the fiber.
  void rebind() noexcept;
  // Whether the running fiber may leave this worker to another thread.
  [[nodiscard]] bool may_hand_off() const noexcept { return !is_bound() && !queues.has_pins(); }
  [[nodiscard]] bool may_run(const task& member) const noexcept;
  [[nodiscard]] bool forward_if_pinned_elsewhere(task& member) noexcept;
  [[nodiscard]] bool maintenance_due() const noexcept { return noted(request::maintenance); }
  // Calls function(data) on the thread's own stack. It must not wait.
  void call_on_thread_stack(void (*function)(void*), void* data) noexcept;

  // Any thread, below.

  // Makes a fiber runnable that is pinned to this worker.
  void give_pinned(task& member) noexcept;
  [[nodiscard]] bool may_have_work() const noexcept { return queues.may_have_items() || forks_.may_have_items(); }
  // Whether it has not announced some of its pushes, which others may be needed for by now. A hint.
  [[nodiscard]] bool has_suppressed_pushes() const noexcept { return wake_policy_.any_suppressed() && may_have_work(); }
  // Whether the fiber in the slot of `victim` is worth a theft. Any thread but its owner.
  [[nodiscard]] static bool is_stalled(const scheduler& victim) noexcept;
  [[nodiscard]] std::size_t queued() const noexcept { return queues.size() + queues.has_slot(); }  // hint
  worker_counters& counters() noexcept { return activity.counters; }
  [[nodiscard]] const worker_counters& counters() const noexcept { return activity.counters; }
  // Records the events here from now on, until request::traced is withdrawn.
  void start_recording(recorder& into) noexcept;
  void ask(request what) noexcept { forks_.interrupts.ask(what); }
  void withdraw(request what) noexcept { forks_.interrupts.withdraw(what); }
  [[nodiscard]] bool asked(request what) const noexcept { return forks_.interrupts.asked(what); }  // hint
  // If the fiber here is in a brief call, a thread comes to take the worker over.
  void relieve_call() noexcept;

 private:
  // Called on the thread that takes this worker over.
  struct handoff_work final : blocking_work {
    explicit handoff_work(scheduler& s) noexcept : worker(s) {}
    void* run() noexcept override;
    void finish(void* handed_off_fiber) noexcept override;
    scheduler& worker;
    handoff_offer<own_thread> offer;
  };

  // State for the next spawns on this worker.
  struct spawn_cache {
    task_pool::cache blocks;
    std::uint64_t next_id = 0, last_id = 0;  // the numbers at hand
    [[nodiscard]] bool has_ids() const noexcept { return next_id != last_id; }
  };

  [[nodiscard]] bool noted(request what) const noexcept { return forks_.interrupts.noted(what); }
  void note(request what, bool on = true) noexcept { forks_.interrupts.note(what, on); }

  // Switching, in scheduler.cpp.
  static void stack_main(switch_thread& thread);
  inline switch_thread* switch_out(context& from, job* next, departure departure) noexcept;
  void complete_switch() noexcept;
  void set_running(task* next) noexcept { activity.running.set(&current_.set(next)); }
  void begin_quantum(task* next) noexcept;
  void answer_requests() noexcept;
  [[nodiscard]] static bool start_in_place(job& next, std::uint8_t stack_bits) noexcept;
  inline stack* take_stack(const job& first) noexcept;
  stack* take_stack_slow(std::uint8_t bits) noexcept;
  switch_thread* switch_out_of_main(context& main, job& next) noexcept;
  static task* fiber_of(switch_thread& on_leave) noexcept;
  switch_thread* make_call(context& main) noexcept;
  job* next_local() noexcept;
  // False: the main stack must choose instead.
  [[nodiscard]] bool count_dispatch() noexcept {
    if (forks_.interrupts.at_switch()) return false;
    if (pace_.is_last_dispatch()) note(request::maintenance);
    return true;
  }
  // Whether there is more than the slot.
  [[nodiscard]] bool others_wait() const noexcept { return may_have_work() || queues.has_pinned(); }

  // The main stack's choice, in search.cpp.
  job* next() noexcept;
  job* maintenance() noexcept;
  job* take_share() noexcept;
  job* take_injected(std::size_t most, std::size_t exchanged = 0) noexcept;
  job* take_pinned() noexcept;
  job* search() noexcept;
  job* take_from_others(bool slots_too, std::int64_t now) noexcept;
  job* steal(bool slots_too, std::int64_t now) noexcept;
  job* steal_from_stalled(std::int64_t now) noexcept;
  void count_theft(scheduler& victim) noexcept;
  [[nodiscard]] victims::worth look_at(const scheduler& victim, std::int64_t now) noexcept;
  [[nodiscard]] victims::progress progress() const noexcept {  // hint
    return {static_cast<std::uint32_t>(counters().dispatches.get()),
            static_cast<std::uint32_t>(counters().spawned.get())};
  }
  [[nodiscard]] std::uint32_t thefts() const noexcept { return thefts_.load(std::memory_order_relaxed); }  // hint
  job* poll_events(bool run_first, std::int64_t now) noexcept;
  using outcome = parker<runtime_state>::outcome;
  outcome sleep();
  job* park(bool& stopping) noexcept;
  job* distribute(intrusive_queue<event>& ready, bool run_first) noexcept;
  [[nodiscard]] bool eager() const noexcept { return pace_.eager(); }

  // Requests of others between two fibers, in world_stop.cpp.
  [[nodiscard]] job* handle_safepoint(job* chosen, bool& stopping) noexcept;
  [[nodiscard]] bool leaves_work() noexcept;

  // Publishing, in publish.cpp.
  [[nodiscard]] bool push_any(job& runnable) noexcept {
    return fiber::is_fiber(runnable) ? queues.push(runnable) : queues.push_job(runnable);
  }
  void push_ring(job& runnable) noexcept {
    if (!push_any(runnable)) [[unlikely]]
      overflow(runnable);
  }
  void overflow(job& runnable) noexcept;
  void enqueue_displaced(job& waits) noexcept;
  void enqueue_slow(job& runnable) noexcept;
  void wake_slow(task& woken) noexcept;
  void announce_slot() noexcept;
  [[nodiscard]] bool others_may_be_woken() const noexcept;
  // To be called after each publication. A lone worker is awake, and there is no other to wake.
  void notify_others_after_publishing() noexcept {
    if (!queues.alone()) notify_others();
  }
  void notify_others() noexcept;
  void announce_if_due(std::int64_t now) noexcept;

  // Recording, in tracing.cpp.
  void record_dispatch() noexcept;
  void record_left() noexcept;
  void record_left_stack(task& self, wait_mode mode, bool yields) noexcept;
  void record_waits(run_times& into, std::uint32_t now, task* next) const noexcept;
  [[nodiscard]] std::uint8_t how_it_left() const noexcept;

  // The members in the order of use: the members that each dispatch uses come first.
  runtime_state& runtime_;
  const std::size_t index_;
  current_task current_;
  switch_state switch_;
  maintenance_pace pace_;
  wake_policy wake_policy_;
  stack_cache stacks_;
  spawn_cache spawn_cache_;
  controlled_run* controlled_ = nullptr;  // in a deterministic run
  victims victims_;
  intrusive_queue<event>* ready_ = nullptr;  // where a sleep in the event loop puts its events
  handoff_work handoff_work_{*this};

  // shared
 public:
  run_queues queues;

 private:
  fork_queue forks_;
  std::atomic<std::uint32_t> thefts_{0};

 public:
  alignas(cache_line) worker_activity activity;

  friend class controlled_run;
  friend class fork_queue;
  friend class runtime_state;
};

}  // namespace ulexite::detail
