#pragma once

// One worker's part of the runtime: its queues, the switch from fiber to fiber, and the loop on the thread's own stack
// that takes its own work, steals, polls and parks. docs/scheduler.md tells the whole.
//
// State shared with other threads
//   ring_, jobs_   deques, see deque.hpp: of fibers and of jobs.
//   woken_         a deque too: of fibers that the event loop or another thread has woken.
//   forks_         see fork_queue.hpp.
//   slot_          the fiber that this worker runs next: the one it woke last. Raided by a thief on its last try and by
//                  the monitor, see next_slot.hpp.
//   counters       owner-written; for thieves, the monitor and the metrics.
//   pinned_        fibers that only this worker may run, brought by others. A queue with a lock, see inject_queue.hpp.
//   running_       the agent that runs. Owner-written; a hint for waiters that decide whether to spin.
//   busy_          the worker is not parked. Owner-written; a hint for the monitor.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/base/random.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/fork/fork_queue.hpp>
#include <ulexite/runtime/park/parker.hpp>
#include <ulexite/runtime/queue/deque.hpp>
#include <ulexite/runtime/queue/inject_queue.hpp>
#include <ulexite/runtime/queue/next_slot.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>
#include <ulexite/runtime/worker/recorder.hpp>
#include <ulexite/runtime/worker/tuning.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class controlled_run;
class controller;
class runtime_state;
enum class departure : bool;
class worker_handoff;
struct event;

using worker_slot = basic_worker_slot<std_parking>;

// A counter that one thread writes and others read.
class counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // counter, owner-written
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }  // counter

 private:
  std::atomic<std::uint64_t> value_{0};  // State: a counter, written by its worker
};

// Does every fiber change its worker whenever it can? For tests.
#ifdef ULEXITE_DEBUG_MIGRATE
inline constexpr bool migrating = true;
#else
inline constexpr bool migrating = false;
#endif

class alignas(cache_line) scheduler : public switch_thread, public worker_slot {
 public:
  scheduler(runtime_state& home, std::size_t index) noexcept;
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // The worker's life on the calling thread, until the runtime ends it, or the thread leaves it to another
  // (begin_handoff) and the fiber for which it did that wants to come back: then that, to be made runnable.
  task* run() noexcept;
  // The same in a deterministic run, on the calling thread, until nothing can run any more.
  void run_controlled(controller& by) noexcept;
  [[nodiscard]] bool is_controlled() const noexcept { return controlled_ != nullptr; }
  // The stacks that this worker keeps for its next fibers go back. Owner only; after the last run, the
  // thread that ends the runtime.
  void give_stacks_back() noexcept;

  // Owner only, below.

  [[nodiscard]] task* running() const noexcept { return current_; }
  runtime_state& home() noexcept { return home_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  task_pool::cache& blocks() noexcept { return blocks_; }
  // A number for a new fiber, unique in the process.
  [[nodiscard]] bool has_ids() const noexcept { return next_id_ != last_id_; }
  std::uint64_t next_id() noexcept { return has_ids() ? next_id_++ : next_id_slow(); }
  // The first of `count` numbers that nobody else gets. Any thread.
  static std::uint64_t take_ids(std::uint64_t count) noexcept;

  // Makes new runnables wait their turn in this worker's queue, or a fiber that was woken run next.
  void add(job& runnable) noexcept {
    perturb();
    if (migrating || !ring_.push(runnable)) [[unlikely]]
      return enqueue_slow(runnable);
    notify_others_after_publishing();
  }
  void add(intrusive_queue<job>& fibers) noexcept;
  void enqueue_job(job& job) noexcept;
  void enqueue_jobs(intrusive_queue<job>& jobs) noexcept;
  void wake(task& woken) noexcept;

  // Is what happens here being recorded? And an event for that.
  [[nodiscard]] bool traced() const noexcept { return (wake_notice_ & wake_traced) != 0; }
  void record(trace_kind kind, std::uint64_t value = 0, std::uint8_t detail = 0) noexcept;

  // The running job goes on as a fiber. Throws errc::limit_reached, std::bad_alloc.
  void make_fiber_of_job();

  // Leaves the running fiber until somebody resumes it. Completes its wait (see suspend.hpp) after the switch,
  // releasing `held` if there is one.
  wake_reason suspend(spin_lock* held, bool prepared, wait_mode mode) noexcept;
  // Lets others run that are waiting for this worker.
  void yield() noexcept;
  // The same for a fiber that has done much without waiting. It changes places with one that it has woken.
  void yield_to_woken() noexcept;
  // The same for a fiber that computes, after request::yield.
  void yield_after_request() noexcept;
  // The running fiber has done some more operations without a wait: true when it should yield.
  [[nodiscard]] bool budget_is_spent() noexcept;
  // Leaves this worker, with all that waits for it, to another thread at once. The running fiber goes on where it is,
  // on a thread that is a plain one now, until end_handoff. False: there is no thread for it, and nothing has changed.
  [[nodiscard]] bool begin_handoff(worker_handoff& leave) noexcept;
  static void end_handoff(worker_handoff& leave) noexcept;

  // A fiber on a leash is run by a job, which gets back control whenever the fiber leaves its stack: a member of a
  // strand, or one that is pinned to its worker. While it is runnable its `run` is set, so the queues take it for that
  // job; nothing of it is seen on the way of other fibers. Meanwhile this worker's main stack is the job's, and a visit
  // of it is due at each switch. Such a fiber offers no forks, and leaves its worker to no other thread.
  void run_on_leash(task& member) noexcept;
  // What the `run` of such a fiber is meanwhile.
  static void run_leashed(job* member) noexcept;
  [[nodiscard]] bool leashed() const noexcept { return leashed_; }
  // The running fiber goes on a leash, if it is on none, or perhaps another: returns on the worker that has it then.
  void renew_leash() noexcept;
  void yield_on_leash_if_requested() noexcept {
    if (forks_.yield_requested()) yield();
  }
  // May the running fiber leave this worker to another thread?
  [[nodiscard]] bool may_hand_off() const noexcept { return !leashed_ && !has_pins(); }
  // The running fiber is pinned here from now on, or no longer.
  void pin() noexcept { ++pinned_here_; }
  void unpin() noexcept { --pinned_here_; }
  [[nodiscard]] bool has_pins() const noexcept { return pinned_here_ > 0; }
  [[nodiscard]] bool may_run(const task& member) const noexcept;
  [[nodiscard]] bool forward_if_pinned_elsewhere(task& member) noexcept;
  // Is a visit of the main stack due that another asked for?
  [[nodiscard]] bool must_visit() const noexcept { return visit_asked_; }
  // What spawns here makes is to be looked at: the numbers at hand are put away.
  void forget_ids() noexcept { next_id_ = last_id_; }
  // Calls function(data) on the thread's own stack. It must not wait.
  void call_on_thread_stack(void (*function)(void*), void* data) noexcept;

  // Any thread, below.

  // Makes a fiber runnable that is pinned to this worker.
  void give_pinned(task& member) noexcept;
  [[nodiscard]] bool has_pinned() const noexcept { return !pinned_.empty(); }
  [[nodiscard]] bool may_have_work() const noexcept {
    return ring_.may_have_items() || woken_.may_have_items() || jobs_.may_have_items() || forks_.may_have_items();
  }
  [[nodiscard]] bool has_slot() const noexcept { return slot_.filled(); }
  // All but the owner; it costs a heavy fence.
  [[nodiscard]] job* raid_slot() noexcept { return slot_.raid(); }
  [[nodiscard]] bool runs_something() const noexcept { return busy_.load(std::memory_order_relaxed); }  // hint
  [[nodiscard]] bool runs(const agent* who) const noexcept { return running_agent() == who; }
  [[nodiscard]] const agent* running_agent() const noexcept {
    return running_.load(std::memory_order_relaxed);  // hint
  }
  [[nodiscard]] std::size_t queued() const noexcept { return in_deques() + has_slot(); }  // hint
  // Records what happens here from now on, until request::traced is withdrawn.
  void start_recording(recorder& into) noexcept;
  // State: since when the monitor has seen it change nothing; 0: it does change. Written by the monitor.
  std::atomic<std::int64_t> unswitched_since{0};
  std::int64_t told_of = 0;           // the monitor's own: of which such time it has told, see when_stuck
  std::atomic<int> thread_number{0};  // the kernel's, of the thread that runs this worker; a hint
  void ask(request what) noexcept { forks_.ask(what); }
  void withdraw(request what) noexcept { forks_.withdraw(what); }

  struct counters {
    counter spawned, ended, dispatches, starts_in_place, steals, overflows, parks, polls, events, stacks_refused;
  } counters;

 private:
  // It is to be announced; it is to be recorded.
  static constexpr std::uint8_t slot_due = 1, wake_traced = 2;

  // What the switch leaves to the computation that it arrives in.
  struct departed {
    enum { nothing, waiting, yielding, yielding_to_woken, ended, calling } what = nothing;
    task* who = nullptr;
    spin_lock* held = nullptr;
    bool prepared = false;
    bool cancellable = false;
    stack* stood_on = nullptr;
    stack_pool* pool = nullptr;
  };

  // What this worker last took from others, to judge whether that was worth the transfer.
  struct theft {
    std::int64_t time = 0;
    std::size_t count = 0;
    std::int64_t patience = 0;  // ns to leave others their work before the next theft
  };

  // The same for the slot.
  struct slot_wake {
    bool to_be_judged = false;  // the fiber that filled the slot has not let go since
    std::int64_t computed = 0;  // ns, by this thread until then
    std::int64_t judged = 0;    // when
    std::int64_t pause = 0;     // ns from then to the next
  };

  // Another thread's taking over.
  struct handoff_work final : blocking_work {
    explicit handoff_work(scheduler& s) noexcept : whose(s) {}
    void* run() noexcept override;
    void finish(void* handed_off_fiber) noexcept override;
    scheduler& whose;
  };

  static void stack_main(switch_thread& thread);
  inline switch_thread* leave(context& from, job* next, departure departure) noexcept;
  static inline void arrive(switch_thread* thread) noexcept;
  void complete_switch() noexcept;
  inline void complete_wait(task& who, spin_lock* held) noexcept;
  void set_running(task* next) noexcept;
  void begin_quantum(task* next) noexcept;
  void answer_requests() noexcept;
  // The clock was read: what waits from now on notes this time. No switch reads the clock for that.
  void note_time(std::int64_t now) noexcept { coarse_time_ = static_cast<std::uint32_t>(now / 1'000'000); }
  [[nodiscard]] bool starts_on(const job& next, const stack_pool& pool) const noexcept;
  stack_pool& pool_for(const job& runnable) const noexcept;
  stack* take_stack(stack_pool& pool) noexcept;
  void recycle(stack& left, stack_pool& pool) noexcept;

  switch_thread* leave_main(context& main, job& next) noexcept;
  static task* fiber_of(switch_thread& on_leave) noexcept;
  std::uint64_t next_id_slow() noexcept;
  switch_thread* make_call(context& main) noexcept;
  [[nodiscard]] job* attend(job* chosen, bool& stopping) noexcept;
  void empty_queues() noexcept;

  job* next_local() noexcept;
  job* next_by_turns() noexcept;
  inline job* pop_ring() noexcept;
  job* pop_jobs() noexcept;
  job* pop_woken() noexcept;
  [[nodiscard]] std::size_t in_deques() const noexcept { return ring_.size() + woken_.size() + jobs_.size(); }
  job* next() noexcept;
  job* housekeeping() noexcept;
  void pace(std::int64_t now) noexcept;
  job* probe_stuck_victim() noexcept;
  job* take_injected(std::size_t most) noexcept;
  job* take_pinned() noexcept;
  job* search() noexcept;
  job* take_from_others(bool slots_too) noexcept;
  job* steal(bool slots_too) noexcept;
  job* steal_fibers(scheduler& victim) noexcept;
  static bool stands_still(const scheduler& victim) noexcept;
  void judge_last_theft(std::int64_t now) noexcept;
  [[nodiscard]] bool few_injected() const noexcept;
  job* poll_events(bool run_first) noexcept;
  using outcome = parker<runtime_state>::outcome;
  outcome sleep();
  job* park(bool& stopping) noexcept;
  job* distribute(bool run_first) noexcept;
  void push_ring(job& fiber) noexcept {
    if (!ring_.push(fiber)) [[unlikely]]
      overflow(fiber);
  }
  void overflow(job& fiber) noexcept;
  [[nodiscard]] bool push_woken(job& fiber) noexcept {
    sides_empty_ = false;
    return woken_.push(fiber);
  }
  void enqueue_slow(job& runnable) noexcept;
  void push_job(job& job) noexcept;
  job* put_into_slot(task& woken) noexcept {
    job* const displaced = has_slot() ? slot_.take() : nullptr;
    slot_.put(woken);
    return displaced;
  }
  void wake_with_notice(task& woken) noexcept;
  void announce_slot() noexcept;
  void set_slot_due(bool due) noexcept {
    wake_notice_ = static_cast<std::uint8_t>((wake_notice_ & ~slot_due) | (due ? slot_due : 0));
  }
  void set_traced(bool traced) noexcept {
    wake_notice_ = static_cast<std::uint8_t>((wake_notice_ & ~wake_traced) | (traced ? wake_traced : 0));
  }
  void record_dispatch() noexcept;
  void record_left() noexcept;
  void note_waits(run_times& into, std::uint32_t now, task* next) const noexcept;
  [[nodiscard]] std::uint8_t how_it_left() const noexcept;
  [[nodiscard]] bool others_may_be_woken() const noexcept;
  void judge_last_slot_wake(std::int64_t now) noexcept;
  inline void prefetch_ring() noexcept;
  // To be called after each publication. A lone worker is awake, and there is no other to wake.
  void notify_others_after_publishing() noexcept {
    if (!alone()) notify_others();
  }
  void notify_others() noexcept;
  [[nodiscard]] bool alone() const noexcept { return forks_.worker_limit() == 1; }  // nobody steals from it
  [[nodiscard]] bool eager() const noexcept;

  // owner only
  runtime_state& home_;
  const std::size_t index_;
  current_execution* execution_ = nullptr;  // the thread's
  task* current_ = nullptr;
  agent job_agent_;          // of whatever runs here that is no fiber
  context* main_ = nullptr;  // of the thread that runs this worker, or of the job that has a fiber on a leash
  context* thread_main_ = nullptr;
  struct call {
    void (*function)(void*);
    void* data;
  } call_{};  // that the fiber which left wants to be made on the thread's stack
  bool leashed_ = false;
  bool visit_asked_ = false;  // by request::visit, since the last visit
  unsigned pinned_here_ = 0;  // fibers
  handoff_work handoff_work_{*this};
  departed departed_;
  job* launching_ = nullptr;         // what the stack that is being started is to run
  stack* launch_stack_ = nullptr;    // that stack; also the one that the running job stands on
  unsigned budget_rounds_ = 0;       // at the running fiber's budget
  unsigned until_housekeeping_ = 1;  // dispatches
  unsigned quanta_per_visit_ = 1;
  unsigned slot_streak_ = 0;      // dispatches in a row from the slot
  std::uint8_t wake_notice_ = 0;  // bits: what is to be done about the next fiber that this worker wakes
  bool sides_empty_ = true;       // nothing was pushed to jobs_ or woken_ since both were found empty
  bool jobs_turn_ = false, forks_turn_ = false;
  unsigned woken_turn_ = 0;
  bool leave_forks_ = false;  // the fiber that forked them only makes room: the next visit leaves them to it
  unsigned stack_colour_ = 0;
  const unsigned stack_colour_step_;  // 0: each start on a stack at the same place
  random random_;
  std::int64_t last_visit_ = 0, last_poll_ = 0;
  std::uint32_t coarse_time_ = 0;  // milliseconds of the steady clock, at the last look at it
  bool polled_ = false;            // since the last visit
  theft last_theft_;
  slot_wake last_slot_wake_;
  std::size_t watched_victim_ = 0;
  std::uint64_t watched_dispatches_ = 0;
  stack* stacks_ = nullptr;  // cache, default size
  unsigned stack_count_ = 0;
  unsigned stacks_wanted_ = tuning::stacks_kept / 2;  // the next time; more each time that none came back
  intrusive_queue<event>* ready_ = nullptr;           // what the event loop brought
  task_pool::cache blocks_;
  std::uint64_t next_id_ = 0, last_id_ = 0;
  controlled_run* controlled_ = nullptr;

  // shared
  deque<job, tuning::ring_size, deque_order::first_in_first_out> ring_;
  deque<job, tuning::ring_size, deque_order::first_in_first_out> woken_;
  deque<job, tuning::ring_size, deque_order::first_in_first_out> jobs_;
  inject_queue pinned_;
  alignas(cache_line) next_slot<job> slot_;
  fork_queue forks_;
  alignas(cache_line) std::atomic<bool> busy_{false};
  std::atomic<recorder*> recorder_{nullptr};  // State: null, or where it records; written by the tracing thread
  std::atomic<const agent*> running_{nullptr};

  friend class controlled_run;
  friend class fork_queue;
  friend class runtime_state;
};

}  // namespace ulexite::detail
