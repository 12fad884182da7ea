// The record of a fiber, from its making to its destruction. It is compiled with runtime/worker, because each step uses
// the blocks, numbers and counters of its worker, without locks.

#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <bit>
#include <mutex>
#include <string>

namespace ulexite::detail {
namespace {

// The calling worker, if it is one of `rt`'s.
scheduler* worker_of(const runtime_state& rt) noexcept {
  scheduler* const here = inlined_execution().scheduler;
  return here && &here->runtime() == &rt ? here : nullptr;
}

// The same for the runtime whose pool the block of `room` is from. It may have been destroyed; the pool exists.
scheduler* worker_of_pool(const void* room) noexcept {
  scheduler* const here = inlined_execution().scheduler;
  return here && here->runtime().tasks.get() == &task_pool::of(room) ? here : nullptr;
}

// A million fibers are a million of these: with a detached fiber's agent and eight bytes of closure, two cache lines.
#if !ULEXITE_ASAN && !ULEXITE_TSAN && !defined(ULEXITE_DEBUG_MIGRATE)
static_assert(sizeof(agent) + sizeof(task) + 8 <= 2 * task_pool::granule);
#endif

task_pool::cache* blocks_of(scheduler* here) noexcept { return here ? &here->blocks() : nullptr; }

// Counts the fiber, and takes a block from the pool. Here and below the slow path is called last, so that the fast path
// saves no registers.
[[gnu::noinline]] void* allocate_slow(runtime_state& rt, unsigned size_class, scheduler* here) {
  rt.count_spawn(here);
  try {
    return rt.tasks->allocate(size_class, blocks_of(here));
  } catch (...) {
    rt.count_end(here);
    throw;
  }
}

// A fiber inherits the deadline of its spawner, and a stop of the whole runtime. The fence pairs with the heavy one of
// request_stop: either this fiber sees the request, or request_stop sees its block and asks it.
void inherit(task& task, const runtime_state& rt, std::int64_t deadline) noexcept {
  task.agent().deadline = deadline;
  std_atomics::light_fence();  // fiber_counts.hpp A
  if (rt.fibers.stop_requested()) [[unlikely]]
    task.agent().word.request_stop();
}

// Spawns by a thread outside, every 128th spawn, for which new numbers are needed, and those with more to do.
[[gnu::noinline]] void publish_slow(task& task) {
  const yield_point at_exit;
  scheduler* const here = initialise(task);
  join_strand(task, here);
  if (here) {
    here->add(task);
  } else {
    task.runtime().inject(task);
  }
}

// The last step of a spawn. `here` is the calling worker, of the task's runtime, or null on another thread. A spawn has
// more to do for a trace, for a strand, and in a deterministic run.
[[gnu::always_inline]] inline void publish_on(scheduler* here, task& task) {
  if (!here || !here->spawns_fast()) [[unlikely]]
    return publish_slow(task);
  task.id = here->id_at_hand();
  inherit(task, here->runtime(), here->running_agent().deadline);
  here->add(task);
}

// A spawn of a plain thread that was given a runtime.
[[gnu::noinline]] void* allocate_outside(unsigned size_class) {
  return allocate_slow(this_runtime_state(), size_class, nullptr);
}

// The fast path uses this worker's free list and counter, so it has no locked instruction. A block that was used for a
// fiber before is an agent already, with its wait word in a valid state.
[[gnu::always_inline]] inline void* allocate_on(scheduler& here, unsigned size_class) {
  if (!here.runtime().fibers.limited()) [[likely]] {
    if (void* const room = task_pool::allocate_cached(size_class, here.blocks())) [[likely]] {
      here.counters().spawned.add();
      return room;
    }
  }
  return allocate_slow(here.runtime(), size_class, &here);
}

}  // namespace

void* allocate_task(runtime_state& rt, unsigned size_class) {
  scheduler* const here = worker_of(rt);
  return here ? allocate_on(*here, size_class) : allocate_slow(rt, size_class, nullptr);
}

void* allocate_task(callers_runtime, unsigned size_class) {
  scheduler* const here = inlined_execution().scheduler;
  return here ? allocate_on(*here, size_class) : allocate_outside(size_class);
}

// The closure's constructor has thrown: the fiber counts as ended.
void deallocate_task(void* room) noexcept {
  runtime_state& rt = task_pool::runtime_of(room);
  scheduler* const here = worker_of(rt);
  rt.count_end(here);
  task_pool::deallocate(room, blocks_of(here));
}

// If a name or a stack is refused, the task ends without having been published, and without a handle.
void apply_options(task& task, task_options options) {
  try {
    if (!options.name.empty()) task.set_name(options.name);
    if (options.stack_size != 0) task.reserve_stack(options.stack_size);
    if (options.with_rare_state) task.rare_state();
  } catch (...) {
    task.detach_at_birth();
    task.abandon();
    throw;
  }
}

// The first part of a spawn off the fast path of publish(), and for batches, branches and jobs that become fibers. A
// trace gets the number of the new fiber, in the record of the worker that spawns it.
scheduler* initialise(task& task) noexcept {
  scheduler* const here = worker_of(task.runtime());
  task.id = here ? here->next_id() : scheduler::reserve_ids(1);
  const agent* const spawner = inlined_execution().agent;
  inherit(task, task.runtime(), spawner ? spawner->deadline : no_deadline);  // null: a plain thread that never waited
  // Notes the time, for runtime::times. A worker does so only while it records; another thread asks the runtime.
  if (!here && task.runtime().trace.is_recording()) stamp_runnable(task);
  if (here && here->traced()) {
    here->record(trace_kind::spawn, task.id);
    stamp_runnable(task);
  }
  return here;
}

void publish(task& task) { publish_on(worker_of(task.runtime()), task); }

// A fiber has no way to another runtime, so its worker belongs to the task's.
void publish(callers_runtime, task& task) { publish_on(inlined_execution().scheduler, task); }

// Called by destroy() only. On the fast path of finish() it is left out, because it has nothing to do there.
task::~task() {
  if (rare_state_.load(std::memory_order_relaxed)) destroy_rare_state();  // no other refers to the task
  if (name) replace_name(nullptr);
}

// Makes the pool of that size provide one stack now, so that the spawn throws, not the start of the fiber.
void task::reserve_stack(std::size_t size) {
  stack_pool& pool = stack_pool::of_size(size);
  pool.ensure_one();
  stack_bits_ = static_cast<std::uint8_t>(std::countr_zero(pool.stack_size()));
}

// ---- its end ----

// From here on it is no longer a fiber, and must not wait. It has run, so it has a stack.
[[gnu::always_inline]] inline void task::leave_stack() noexcept {
  current_stack->owner.store(nullptr, std::memory_order_release);  // pairs with the overflow handler's load
  state.finish();
}
// The same, and the runtime counts it no longer. `here`: the calling worker, if it is one of the task's runtime.
void task::leave_runtime(scheduler* here) noexcept {
  // Before the stack may be used again: an overflow must be reported as this fiber's.
  if (current_stack) {
    check_stack_canary(*current_stack);
    leave_stack();
  } else {  // it has never run
    state.finish();
  }
  if (rare_state_.load(std::memory_order_relaxed)) [[unlikely]]  // the fiber's own, or ordered by B
    leave_strand();
  runtime().count_end(here);
}

void task::clear_locals_slow() noexcept { rare_state_.load(std::memory_order_acquire)->locals.clear(); }  // A

// The fast path: a detached fiber that leaves nothing only has to return its block. A stack with a canary is checked on
// the slow path. The rare path is called last, so that the fast path saves no registers.
scheduler* task::finish() noexcept {
  scheduler* const here = inlined_execution().scheduler;
  // With a limit on the number of fibers their exact count is needed, so that case is slow too.
  const bool simple = (bits().load(std::memory_order_acquire) & (released | needs_cleanup)) == released &&  // B
                      lock_.is_free() && !holds_locks() && !current_stack->canary && !here->runtime().fibers.limited();
  task_pool::cache::free_list* const place = simple ? task_pool::place_for(this, here->blocks()) : nullptr;
  if (!place) return finish_slow();
  leave_stack();
  here->counters().ended.add_after_others();
  task_pool::keep(this, *place);  // its destructor has nothing to do
  return here;
}

// With an owner, the fiber ends under the lock, and the owner destroys the task later. The joiner's wait is claimed
// under the lock, but it is resumed after that, because then the task may be destroyed at any moment. `early`: the
// joiner has not left its stack yet, and finds the claim itself.
scheduler* task::finish_slow() noexcept {
  // The destructors of these values are the user's, and may wait. So the worker is looked up after them.
  begin_completion();  // not called yet if the closure has no destructor; or that has made locals
  if (holds_locks()) fail_for_locks();
  scheduler* const here = worker_of(runtime());
  lock_.lock();
  if (bits().load(std::memory_order_relaxed) & released) {  // lock_ held
    lock_.unlock();
    return destroy();
  }
  leave_runtime(here);
  set(ended);
  // The joiner is resumed by this fiber's worker, and so runs next there.
  detail::agent* joiner = nullptr;
  if (const auto claimed = joiner_ ? joiner_->word.claim(wake_reason::notified) : claim_result::lost;
      claimed != claim_result::lost) {
    joiner = std::exchange(joiner_, nullptr);
    if (claimed == claim_result::early) joiner = nullptr;
  }
  lock_.unlock();  // the owner may destroy it now
  if (joiner) resume(*joiner, here);
  return here;
}

// Under the lock, because the fiber leaves the runtime between its look at `released` and its end.
void task::release() noexcept {
  if (has_ended()) return release_ended();
  lock_.lock();
  const bool last = (set(released) & ended) != 0;
  lock_.unlock();
  if (last) destroy();
}

// Nothing else refers to the task once finish_slow has left the lock. If the fiber leaves only its block, a worker of
// its runtime keeps that.
[[gnu::noinline]] void task::release_ended() noexcept {
  lock_.wait_until_free();
  if (scheduler* const here = worker_of_pool(this); here && !(bits().load(std::memory_order_relaxed) & needs_cleanup))
    if (task_pool::cache::free_list* const place = task_pool::place_for(this, here->blocks()))
      return task_pool::keep(this, *place);  // its destructor has nothing to do
  destroy();
}

// The remaining objects of the user are destroyed first. That may wait, and so continue on another worker; a fiber that
// destroys itself is still a fiber until then. Returns the calling worker, if it is one of the task's runtime.
scheduler* task::destroy() noexcept {
  report_failure();
  failure = nullptr;
  drop_result();
  clear_locals();  // the locals that the lines above have made
  scheduler* const here = worker_of_pool(this);
  // False if the fiber has ended under the lock before (finish_slow), and its owner destroys the task now.
  if ((bits().load(std::memory_order_relaxed) & ended) == 0) leave_runtime(here);  // its own, or ordered by lock_
  const bool keeps_address = holds_locks();  // the pool checks too, but a worker's cache does not
  const bool kept = agent().kept;
  this->~task();
  if (!kept) [[likely]]
    task_pool::deallocate(this, keeps_address ? nullptr : blocks_of(here));
  return here;
}

// The locks that it holds can no longer be unlocked. Its block is not used again, because the locks know their holder
// by its address.
[[gnu::cold]] void task::fail_for_locks() noexcept {
  if (failure) return;
  mark_needs_cleanup();
  try {
    throw usage_error(words_for_fiber(id, name_of(*this, id)) + " ended while it held " +
                      std::to_string(agent().held_locks) + " lock(s) of mutex or shared_mutex, which stay locked");
  } catch (...) {
    failure = std::current_exception();
  }
}

// Called when no worker runs, or before the task was published. A fresh fiber still has its closure, which is
// destroyed. A fiber that has run has a stack, or a coroutine's frames, with objects that others may refer to, and that
// could not be destroyed elsewhere: a lock would be unlocked by another than its owner, and a group would wait for
// ever. So the stack, or the frames, and the block are kept for ever.
void task::abandon() noexcept {
  agent().held_locks = 0;  // it is not at fault
  const bool has_waited = state.phase() != fiber_phase::fresh || saved.frame;
  agent().kept = has_waited;
  if (!has_waited)
    operations_.abandon(*this);
  else if (current_stack)
    stack_pool::keep(*current_stack, saved);
  if (detail::rare_task_state* const rare = has_waited ? rare_state_if_made() : nullptr; rare && rare->c_handle)
    rare->end_c_handle(std::exchange(rare->c_handle, nullptr));
  failure = std::make_exception_ptr(operation_cancelled());
  mark_needs_cleanup();
  // So that the failure counts as a cancellation, and is not reported.
  agent().word.request_stop();
  begin_completion();
  forget_stop_callbacks();
  finish_slow();
}

// A fiber that waits for its own end would wait for ever. In block_in_place it is a plain thread, so it is asked there.
void task::check_joiner(detail::agent& self) const {
  if (has_joiner()) throw usage_error("join_handle: two wait for the end of one fiber");
  if (self.kind == agent_kind::thread && static_cast<const thread_agent&>(self).handed_off_fiber == this)
    throw usage_error("join_handle: a fiber waits in block_in_place for its own end");
}

// The joiner is entered under the lock, and suspends with the lock held, so the fiber cannot end in between. After a
// deadline or a stop, the joiner removes its entry. If the fiber has ended before that, the result is "ended".
bool task::join(std::int64_t deadline, detail::cancellable cancellable) {
  const caller self = inlined_caller();
  if (has_ended()) {
    spend_budget(*self.agent);
    return true;
  }
  {
    std::unique_lock lock(lock_);
    if (has_ended()) return true;
    check_joiner(*self.agent);
    check_may_wait(*self.agent, wait_kind::join);
    joiner_ = self.agent;
    lock.release();
  }
  if (suspend_and_unlock(self, lock_, waiting_for(wait_kind::join, this, cancellable), deadline) ==
      wake_reason::notified)
    return true;
  const std::lock_guard lock(lock_);
  joiner_ = nullptr;
  return has_ended();
}

bool task::done() noexcept {
  const yield_point at_exit;
  return has_ended();
}

// Keeps the exception for the handle. It is not kept if it was taken already and there is no owner. Its taker may
// rethrow it as soon as the closure is destroyed, and this task must not refer to it then.
void task::keep_failure() noexcept {
  expired_ = agent().expired;
  if (failure_taken_ && (bits().load(std::memory_order_relaxed) & released)) return;  // never withdrawn
  failure = std::current_exception();
  mark_needs_cleanup();
}

// Called when no other refers to the task: an exception that was not taken goes to the runtime's handler.
void task::report_failure() noexcept {
  if (!failure || failure_taken_) return;
  try {
    std::rethrow_exception(failure);
  } catch (const operation_cancelled&) {
    if (agent().word.stop_requested() || expired_) return;
  } catch (...) {
  }
  report_unhandled(*task_pool::of(this).handler(), *this, failure);
}

}  // namespace ulexite::detail
