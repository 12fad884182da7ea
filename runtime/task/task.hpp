#pragma once

// A fiber's record, from its spawn to the last read of its result.
//
// It ends in one of four ways.
//   finish    the fiber, when its closure has returned: wakes the joiner, or destroys a task without an owner.
//   release   the owner gives the task up: destroys it if the fiber has ended.
//   abandon   the runtime, when a fiber will never run again: as finish, but objects on its stack are not destroyed.
//   destroy   called by finish and release for a task to which nothing else refers.
//
// State
//   rare_state_   null, or state that few fibers need. Set once with lock_ held, by a holder of the handle or by the
//                 fiber.
//   bits_         see bit. Set before the task is published, later with lock_ held.
//
// Pairings
//   A  rare_state() stores rare_state_, release  ->  a later rare_state(), or the fiber at its end, loads it, acquire:
//      it sees the complete state.
//   B  with lock_ held, release sets `released` and finish_slow sets `ended`, release  ->  the other of the two, and
//      join and done, load bits_, acquire: they see the other's writes, and the result. If they then find lock_ free,
//      that critical section has ended, and nothing else refers to the task.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/fiber.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

namespace ulexite::detail {

class runtime_state;
class scheduler;
class stackless_wait;
class strand;
struct rare_task_state;
enum class cancellable : bool;

// A fiber as the runtime sees it: its closure and its end. The runtime refers to it until the fiber has ended, and an
// owner may do so too: a handle, or the frame of the fiber that forked it. The last of the two destroys it.
class task : public fiber {
 public:
  struct operations {
    scheduler* (*run)(task&) noexcept;  // runs the closure, keeps its result, destroys the closure; returns finish()
    void (*abandon)(task&) noexcept;    // destroys the closure of a task that never ran
    void (*drop)(task&) noexcept;       // destroys the result; null: nothing to do
  };

  explicit task(const operations& how) noexcept : operations_(how), bits_(how.drop ? needs_cleanup : 0) {}

  detail::agent& agent() noexcept { return *(reinterpret_cast<detail::agent*>(this) - 1); }

  // The handle's side. Any thread, one at a time.
  //
  // Waits for the end. False if `deadline` passed first, or a cancellable wait was cancelled. Throws as check_joiner.
  bool join(std::int64_t deadline, cancellable cancellable);
  bool join(std::int64_t deadline = no_deadline) { return join(deadline, detail::cancellable{false}); }
  [[nodiscard]] bool done() noexcept;
  // Ends the owner's reference. Reports an exception that was not taken.
  void release() noexcept;
  // For select, under the guard: makes `waiter` the joiner. The fiber's end claims the joiner's wait.
  [[nodiscard]] spin_lock& guard() noexcept { return lock_; }
  [[nodiscard]] bool has_ended() const noexcept { return (bits().load(std::memory_order_acquire) & ended) != 0; }  // B
  // Throws usage_error if another caller waits for the end, or if the calling agent, `self`, may not wait. It may not
  // wait if it is this fiber itself, in block_in_place.
  void check_joiner(detail::agent& self) const;
  [[nodiscard]] bool has_joiner() const noexcept { return joiner_ && !joiner_->word.abandoned(); }
  void set_joiner(detail::agent* waiter) noexcept { joiner_ = waiter; }

  // Asks the fiber to stop; true the first time.
  bool request_stop() noexcept;
  // A token of the requests to stop. Throws std::bad_alloc.
  std::stop_token get_stop_token();
  // The source of the token if there was a call of get_stop_token, otherwise one without a state.
  std::stop_source stop_source() noexcept;
  // Rethrows the closure's exception.
  void rethrow_failure() {
    if (!failure) return;
    failure_taken_ = true;
    std::rethrow_exception(failure);
  }

  // The runtime's side.
  //
  // Called before the task is published: there will be no handle.
  void detach_at_birth() noexcept { bits_ |= released; }
  // Called before the task is published: its handle is in the frame of the forking fiber.
  void make_branch_of(const task& forking) noexcept {
    bits_ |= is_of_fork;
    stack_bits_ = forking.stack_bits_;
  }
  // Called before the task is published: others wait for what its closure does, so it is called even if the fiber is
  // asked to stop while the system refuses it a stack.
  void set_must_begin() noexcept { bits_ |= is_awaited; }
  [[nodiscard]] bool must_begin() const noexcept {
    return (bits().load(std::memory_order_relaxed) & is_awaited) != 0;  // set before it was published
  }
  // Whether the frame of its fork still owns it.
  [[nodiscard]] bool is_branch() const noexcept {
    return (bits().load(std::memory_order_relaxed) & (is_of_fork | released)) == is_of_fork;  // hint
  }
  // Sets the stack size in bytes; 0: the runtime's default. Called before the task is published. Throws
  // std::invalid_argument, and std::system_error if the system refuses the first stack of this size.
  void reserve_stack(std::size_t size);
  // The wanted size as a power of two; 0: the runtime's default.
  [[nodiscard]] std::uint8_t stack_bits() const noexcept { return stack_bits_; }
  [[nodiscard]] runtime_state& runtime() const noexcept { return task_pool::runtime_of(this); }
  // Where a coroutine waits or yields, without a stack; null for any other fiber. Exact for the thread that may resume
  // it. The place is that of a fiber's saved frame, so the run queues prefetch it.
  [[nodiscard]] stackless_wait* stackless() const noexcept {
    return state.phase() == fiber_phase::fresh ? static_cast<stackless_wait*>(saved.frame) : nullptr;
  }
  void wait_stackless(stackless_wait& at) noexcept { saved.frame = &at; }
  // Runs the task on the caller's stack. At the return it may be freed. Returns the caller's present worker.
  scheduler* run_here() noexcept { return operations_.run(*this); }
  // The closure has returned, and is destroyed next. Destroys the fiber's locals. From here on no request cancels the
  // fiber, because destructors may wait, and an exception must not leave them. finish() calls it too, if need be.
  void begin_completion() noexcept {
    detail::agent& self = agent();
    self.shielded = true;
    self.expired = false;
    self.deadline = no_deadline;
    clear_locals();
  }
  // The last step of the closure's wrapper, on the fiber's stack and worker. Wakes the joiner, or destroys the task if
  // there is no owner. Returns the worker on which the fiber ends.
  scheduler* finish() noexcept;
  // The fiber will never run again: ends it as if it was cancelled. Objects on its stack are not destroyed.
  void abandon() noexcept;

  // The fiber's own side.
  //
  // Marks the fiber's exception as taken, whatever happens to its handle.
  void take_failure() noexcept { failure_taken_ = true; }
  // Called in a catch block: stores the closure's exception for the handle.
  void keep_failure() noexcept;
  // Throws std::bad_alloc.
  local_values& locals();
  // The rare state. The first form makes it if needed, and throws std::bad_alloc; the second returns null if there is
  // none. Called by the fiber, or before its task is published.
  rare_task_state& rare_state();
  [[nodiscard]] rare_task_state* rare_state_if_made() const noexcept {
    return rare_state_.load(std::memory_order_acquire);  // A
  }
  // Makes the fiber a member of the strand `to`, or of none, for the holders of its handle. Returns the one before. It
  // has rare state.
  strand* change_strand(strand* to) noexcept;
  // this_fiber::user_data, for a thread outside; null if the record now has another number. The fiber may run, and may
  // end. Never waits.
  [[nodiscard]] void* data_for_outside(std::uint64_t of) const noexcept;
  // Copies `text`, which is the fiber's name from now on.
  void set_name(std::string_view text);

  std::exception_ptr failure;  // what the closure has thrown, or null
#ifdef ULEXITE_DEBUG_MIGRATE
  std::size_t last_worker = SIZE_MAX;  // so that the next is another
#endif

 protected:
  ~task();

 private:
  void replace_name(const char* with) noexcept;
  void destroy_rare_state() noexcept;
  void leave_strand() noexcept;
  void clear_locals() noexcept {
    if (rare_state_.load(std::memory_order_acquire)) [[unlikely]]  // A
      clear_locals_slow();
  }
  void clear_locals_slow() noexcept;
  void forget_stop_callbacks() noexcept;
  void relay_stops(rare_task_state& mine, const std::stop_source& source);
  void drop_result() noexcept {
    if (operations_.drop) operations_.drop(*this);
  }
  enum bit : std::uint8_t {
    ended = 1,          // the fiber has ended; set by it
    released = 2,       // no owner refers to it: detached from the start, or given up; set by the owner
    needs_cleanup = 4,  // destroy does more than return the block; set by the fiber, or by the owner before `released`
    is_of_fork = 8,     // its owner is the frame of the fiber that forked it; set before it is published
    is_awaited = 16,    // see set_must_begin
  };
  // Once the task is published. Before, the member is used as it is, because an atomic one hides from the compiler what
  // it knows of a spawn.
  [[nodiscard]] std::atomic_ref<std::uint8_t> bits() const noexcept { return std::atomic_ref<std::uint8_t>(bits_); }
  void release_ended() noexcept;
  scheduler* finish_slow() noexcept;
  // With lock_ held. Returns the bits before.
  std::uint8_t set(bit what) noexcept {
    const std::uint8_t before = bits().load(std::memory_order_relaxed);  // lock_ held
    bits().store(before | what, std::memory_order_release);              // B
    return before;
  }
  void mark_needs_cleanup() noexcept {
    const std::lock_guard lock(lock_);
    set(needs_cleanup);
  }
  [[nodiscard]] bool holds_locks() noexcept { return agent().held_locks != 0; }
  void fail_for_locks() noexcept;
  void leave_stack() noexcept;
  void leave_runtime(scheduler* here) noexcept;
  scheduler* destroy() noexcept;
  void report_failure() noexcept;

  const operations& operations_;  // of the closure's and the result's type
  std::atomic<rare_task_state*> rare_state_{nullptr};
  std::uint8_t stack_bits_ = 0;  // the wanted stack's size as a power of two; 0: the runtime's default
  mutable std::uint8_t bits_;
  bool expired_ = false;             // the fiber's deadline had passed when `failure` was kept
  spin_lock lock_;                   // guards the rest, and rare_state_, `ended` and `released` as they are set
  bool failure_taken_ = false;       // `failure` was rethrown, or will be: it is not reported
  detail::agent* joiner_ = nullptr;  // waits for the end; null again once its wait was claimed
};

struct task_options {
  std::string_view name{};
  std::size_t stack_size = 0;
  spawn_place where{};
  bool with_rare_state = false;  // made before the spawn returns, so that no use by the fiber throws

  [[nodiscard]] bool must_be_applied() const noexcept { return !name.empty() || stack_size != 0 || with_rare_state; }
};

// In place of a runtime: the one of the calling fiber. Then no step has to compare runtimes.
struct callers_runtime {};

// Returns room for a task, in a block of `size_class` of the pool of `rt`. Throws errc::limit_reached or
// std::bad_alloc. The second form throws errc::no_runtime outside a fiber.
void* allocate_task(runtime_state& rt, unsigned size_class);
void* allocate_task(callers_runtime, unsigned size_class);
// Returns room in which no task was made.
void deallocate_task(void* room) noexcept;
// Gives the task a name, a stack size and a rare state. If that throws, frees the task. It takes a copy. So a spawn
// without options, which has constant ones, does not have to put them into memory.
void apply_options(task& task, task_options options);
// Sets the state that the task inherits from its spawner, and its number. Returns the calling worker, if it belongs to
// the task's runtime.
scheduler* initialise(task& task) noexcept;
// Makes the task a member of its spawner's strand. `here` is the result of initialise. Throws std::bad_alloc, and then
// frees the task.
void join_strand(task& task, scheduler* here);
// Initialises the task, and makes it runnable. In a strand it becomes a member, which may throw std::bad_alloc, and
// then frees the task. The second form is for a task of the caller's runtime.
void publish(task& task);
void publish(callers_runtime, task& task);
inline void publish(runtime_state&, task& task) { publish(task); }

// The runtime of the calling fiber. Throws errc::no_runtime outside one.
runtime_state& this_runtime_state();

// The fiber that runs on the calling thread, or null.
task* this_task() noexcept;

// A copy of the name of a fiber that may run, and may end. Empty if the record now has another number. The task's
// runtime must exist. Any thread. Throws std::bad_alloc.
std::string name_of(const fiber_identity& who, std::uint64_t id);

// Copies the name into `into`, cut. Never waits: empty if the name is being changed.
void copy_name(const fiber_identity& who, std::uint64_t id, char (&into)[32]) noexcept;

// A token of the requests to stop the calling fiber; an empty one on a plain thread. Throws std::bad_alloc.
std::stop_token this_stop_token();

}  // namespace ulexite::detail
