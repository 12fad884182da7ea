// How fibers are read from outside: by an inspection, which holds suspended fibers, or without any hold. Both
// copy the fiber's record first, because its block may be reused at any moment.

#include <ulexite/base/atomics.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/channel_head.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>
#include <ulexite/runtime/worker/inspection.hpp>

#include <atomic>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <utility>

namespace ulexite::detail {

__attribute__((noinline, no_sanitize("address", "thread"))) void copy_record(const agent& block,
                                                                             raw_record& into) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // the earlier reads are older
  const auto* const from = reinterpret_cast<const volatile raw_record::word*>(&block);
  raw_record::word* const to = into.words;
  for (std::size_t i = 0; i < std::size(into.words); ++i) to[i] = from[i];
  std::atomic_thread_fence(std::memory_order_acquire);  // the next reads are younger
}

// The worker's side has only a compiler fence (scheduler::begin_quantum), so the other side needs the kernel's barrier.
// A build for ThreadSanitizer has real fences on both sides.
bool inspection::possible() noexcept { return ULEXITE_TSAN || fences_are_asymmetric; }

inspection::inspection(runtime_state& rt, std::unique_lock<std::mutex> alone) noexcept
    : alone_(std::move(alone)), runtime_(rt) {
  for (const auto& s : runtime_.schedulers) s->ask(request::inspected);
}

inspection::~inspection() {
  release();
  for (const auto& s : runtime_.schedulers) s->withdraw(request::inspected);
}

void inspection::hold(const agent& block, std::size_t size) noexcept {
  if (runtime_.world.held.holds(&block)) return;
  runtime_.world.held.hold(&block, size);
  std_atomics::heavy_fence();                               // held_range.hpp A
  now_ = static_cast<std::uint32_t>(now_ns() / 1'000'000);  // late, because waits begin until the fence
}
void inspection::release() noexcept { runtime_.world.held.hold(nullptr, 0); }

// A coroutine that waits is in the phase of a fiber that has not begun.
[[nodiscard]] static bool has_begun(const fiber& content) noexcept {
  return content.state.phase() != fiber_phase::fresh || content.saved.frame;
}

// The first copy shows whether the block has a fiber, and in which phase. The second copy is made after the phase was
// read, so it has the writes before this phase. The word is read before and after the second copy. If it shows a wait
// both times, it is the same wait, because the fiber is held.
bool inspection::read(agent& block, fiber_record& into) const {
  raw_record raw;
  copy_record(block, raw);
  // A block is an agent even if it is unused, so this may be read in any block.
  if (!raw.owner().in_use) return false;
  const fiber_phase phase = raw.content().state.phase();
  if (phase >= fiber_phase::dead) return false;
  const bool waited = block.word.waits();
  copy_record(block, raw);  // the writes before the phase that was read
  const bool waits = waited && block.word.waits() && phase != fiber_phase::running;
  const fiber& content = raw.content();
  into = {};
  into.who = &block.fiber();
  into.id = content.id;
  into.where = content.where;
  into.held_locks = raw.owner().held_locks;
  into.stop_requested = block.word.stop_requested();
  switch (phase) {
    case fiber_phase::running: into.state = fiber_record::status::running; break;
    default:  // suspended, perhaps without a stack: it waits, or is in a run queue
      into.state = waits                ? fiber_record::status::waiting
                   : has_begun(content) ? fiber_record::status::ready
                                        : fiber_record::status::fresh;
  }
  if (into.id == 0) return false;  // not spawned yet
  into.name = name_of(*into.who, into.id);
  // The frame is valid only in this phase: the fiber has left its stack, and does not return to it while it is held.
  if (phase == fiber_phase::resumable) {
    into.frame = content.saved.frame;
    into.stack_size = content.current_stack->size();
    into.stack_depth = static_cast<std::size_t>(content.current_stack->high - static_cast<const char*>(into.frame));
  }
  if (waits) read_wait(content, into);
  if (waits && phase == fiber_phase::fresh)
    into.coroutine = static_cast<const coroutine_frame*>(
        static_cast<const stackless_wait*>(content.saved.frame)->continues.address());
  return true;
}

// A waiting fiber is in no run queue, so its link there has the object of the wait (resumable_job::set_wait).
void inspection::read_wait(const fiber& waiting, fiber_record& into) const {
  into.kind = wait_mode::kind_of(waiting.wait_bits);
  into.timed = (waiting.wait_bits & wait_mode::timed_bit) != 0;
  into.cancellable = (waiting.wait_bits & wait_mode::cancellable_bit) != 0;
  into.object = waiting.next;
  into.waited = waited_since(waiting.wait_since, now_);
  // The fiber is held, so its call has not returned, and the channel is there.
  if (into.kind == wait_kind::send) into.capacity = static_cast<const channel_head*>(into.object)->capacity_;
  if (into.kind != wait_kind::join) return;
  // The joiner holds the handle as long as it does not run, so the fiber that it joins is there.
  const auto& joined = *static_cast<const task*>(into.object);
  raw_record raw;
  copy_record(*(reinterpret_cast<const agent*>(&joined) - 1), raw);
  into.joined = raw.content().id;
  into.joined_name = name_of(joined, into.joined);
}

namespace {

// Of a stack that another thread may just have made: without an order between the two, the bounds may still be null. So
// ThreadSanitizer, which would report that, does not check it.
__attribute__((noinline, no_sanitize("thread"))) void copy_bounds(const volatile stack& current_stack,
                                                                  fiber_view& into) noexcept {
  into.low = current_stack.low;
  into.high = current_stack.high;
}

// As inspection::read, but of a fiber that may continue. The copy alone tells whether it waits: a later look at the
// block may meet another wait, with another object. `stopped`: nothing runs, so the object is there.
bool view(agent& block, bool stopped, fiber_view& into) noexcept {
  raw_record raw;
  copy_record(block, raw);
  const fiber& content = raw.content();
  const fiber_phase phase = content.state.phase();
  if (!raw.owner().in_use || phase >= fiber_phase::dead) return false;
  const task& who = block.fiber();
  into.id = content.id;  // 0: it is just being spawned, and only its record is of interest
  copy_name(who, content.id, into.name);
  if (content.where.known() && content.where.in_source()) {
    into.file = content.where.source().file_name();
    into.line = content.where.source().line();
  } else if (content.where.known()) {
    into.code = content.where.code();
  }
  into.user_data = who.data_for_outside(content.id);
  into.record = &block;
  into.record_size = task_pool::granule * (raw.owner().size_class + 2U);
  if (!has_begun(content)) {
    into.state = fiber_view::status::fresh;
    return true;
  }
  // A started fiber has a stack until its end, also while it runs. So a collector can scan it conservatively. Only a
  // coroutine has none while it waits.
  if (content.current_stack) copy_bounds(*content.current_stack, into);
  if (phase == fiber_phase::running) return true;
  if (content.current_stack) into.sp = content.saved.frame;
  into.state = raw.owner().word.waits() ? fiber_view::status::waiting : fiber_view::status::ready;
  if (into.state == fiber_view::status::ready) return true;
  fiber_record wait;
  wait.state = fiber_record::status::waiting;
  wait.kind = wait_mode::kind_of(content.wait_bits);
  wait.object = content.next;
  into.waits = to_string(wait.kind);
  // A thread that is not stopped may end the wait now: it claims the word, and then overwrites `next`.
  if (!block.word.waits()) return true;
  into.object = wait.object;
  if (const agent* const holder = stopped ? holder_of(wait) : nullptr) {
    raw_record other;
    copy_record(*holder, other);
    if (other.owner().kind != agent_kind::thread) into.holder = other.content().id;
  }
  return true;
}

}  // namespace

// Takes no lock, because the caller may have stopped a thread that holds one.
void for_each_fiber(const runtime_state& rt, void (*visit)(void* data, const fiber_view& fiber), void* data) noexcept {
  const bool stopped = rt.world.stopped.get();  // exact for the thread that has stopped it
  rt.tasks->for_each_unlocked([&](agent& block) {
    if (fiber_view found; view(block, stopped, found)) visit(data, found);
  });
}

// The mark of the worker is read again after the copy. If it has changed, the copy may be of another fiber, and is
// dropped.
fiber_record running_on(const scheduler& worker) {
  fiber_record found;
  const agent* const who = worker.activity.running.get();
  if (!who) return found;
  raw_record raw;
  copy_record(*who, raw);
  // The agent of the worker's jobs has no record behind it, and is not in use. A fiber may be of the kind of a job for
  // a while, for example in on_thread_stack.
  if (!raw.owner().in_use || worker.activity.running.get() != who) return found;
  found.id = raw.content().id;
  found.where = raw.content().where;
  found.name = name_of(*reinterpret_cast<const task*>(who + 1), found.id);
  return found;
}

// The object of a wait for a mutex is the mutex. Its first member is the word with its owner's agent and, in the lowest
// bit, waiters_bit (sync/mutex.hpp).
const agent* holder_of(const fiber_record& waiting) noexcept {
  if (waiting.state != fiber_record::status::waiting) return nullptr;
  // The two kinds of waits with one agent that can end them. For other waits there may be many, or none.
  if (waiting.kind == wait_kind::join)
    return static_cast<const agent*>(waiting.object) - 1;  // a task is directly behind its agent
  if (waiting.kind != wait_kind::mutex) return nullptr;
  const auto& word = *static_cast<const std::atomic<std::uintptr_t>*>(waiting.object);
  return reinterpret_cast<const agent*>(word.load(std::memory_order_relaxed) & ~std::uintptr_t{1});  // hint
}

}  // namespace ulexite::detail
