#include <ulexite/base/atomics.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/runtime/worker/raw_record.hpp>

#include <atomic>
#include <mutex>

namespace ulexite::detail {

bool inspection::possible() noexcept { return ULEXITE_TSAN || fences_are_asymmetric; }

inspection::inspection(runtime_state& home) noexcept
    : home_(home), now_(static_cast<std::uint32_t>(now_ns() / 1'000'000)) {
  home_.world.inspecting.lock();
  for (const auto& s : home_.schedulers) s->ask(request::inspected);
  std_atomics::heavy_fence();  // A
}

inspection::~inspection() {
  for (const auto& s : home_.schedulers) s->withdraw(request::inspected);
  home_.world.inspecting.unlock();
}

bool inspection::read(agent& block, fiber_record& into) const {
  raw_record raw;
  copy_record(block, raw);
  if (!raw.owner().in_use) return false;
  const fiber_phase phase = raw.content().state.phase();
  if (phase >= fiber_phase::dead) return false;
  const bool waited = block.word.waits();
  copy_record(block, raw);  // the writes before the phase that was read
  const bool waits = waited && block.word.waits() && phase == fiber_phase::resumable;
  const fiber& content = raw.content();
  into = {};
  into.who = &block.fiber();
  into.id = content.id;
  into.where = content.where;
  into.held_locks = raw.owner().held_locks;
  into.stop_requested = block.word.stop_requested();
  switch (phase) {
    case fiber_phase::fresh: into.state = fiber_record::status::fresh; break;
    case fiber_phase::running: into.state = fiber_record::status::running; break;
    default: into.state = waits ? fiber_record::status::waiting : fiber_record::status::ready;
  }
  if (into.id == 0) return false;  // not spawned yet
  into.name = name_of(*into.who, into.id);
  if (phase == fiber_phase::resumable) {
    into.frame = content.saved.frame;
    into.stack_size = content.standing->size();
    into.stack_depth = static_cast<std::size_t>(content.standing->high - static_cast<const char*>(into.frame));
  }
  if (waits) read_wait(content, into);
  return true;
}

void inspection::read_wait(const fiber& waiting, fiber_record& into) const {
  into.kind = wait_mode::kind_of(waiting.wait_bits);
  into.timed = (waiting.wait_bits & wait_mode::timed_bit) != 0;
  into.object = waiting.next;
  into.waited = now_ - waiting.wait_since;
  if (into.kind != wait_kind::join) return;
  // The joiner holds the handle as long as it does not run, so the fiber that it joins is there.
  const auto& joined = *static_cast<const task*>(into.object);
  raw_record raw;
  copy_record(*(reinterpret_cast<const agent*>(&joined) - 1), raw);
  into.joined = raw.content().id;
  into.joined_name = name_of(joined, into.joined);
}

namespace {

// As inspection::read, but of a fiber that may continue.
bool view(agent& block, fiber_view& into) noexcept {
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
  const rare_task_state* const rare = who.rare_state_if_made();
  into.user_data = rare ? rare->user_data : nullptr;
  into.record = &block;
  into.record_size = task_pool::granule * (raw.owner().size_class + 2U);
  if (phase == fiber_phase::fresh) {
    into.state = fiber_view::status::fresh;
    return true;
  }
  if (const stack* const standing = content.standing) {
    into.low = standing->low;
    into.high = standing->high;
  }
  if (phase != fiber_phase::resumable) return true;
  into.sp = content.saved.frame;
  into.state = block.word.waits() ? fiber_view::status::waiting : fiber_view::status::ready;
  if (into.state == fiber_view::status::ready) return true;
  fiber_record wait;
  wait.state = fiber_record::status::waiting;
  wait.kind = wait_mode::kind_of(content.wait_bits);
  wait.object = content.next;
  into.waits = to_string(wait.kind);
  into.object = wait.object;
  if (const agent* const holder = holder_of(wait)) {
    raw_record other;
    copy_record(*holder, other);
    if (other.owner().kind != agent_kind::thread) into.holder = other.content().id;
  }
  return true;
}

}  // namespace

void for_each_fiber(const runtime_state& home, void (*visit)(void* data, const fiber_view& fiber),
                    void* data) noexcept {
  home.tasks->for_each_unlocked([&](agent& block) {
    if (fiber_view found; view(block, found)) visit(data, found);
  });
}

fiber_record running_on(const scheduler& worker) {
  fiber_record found;
  const agent* const who = worker.activity().running();
  if (!who || !worker.activity().busy()) return found;
  raw_record raw;
  copy_record(*who, raw);
  if (raw.owner().kind != agent_kind::fiber || !raw.owner().in_use || worker.activity().running() != who) return found;
  found.id = raw.content().id;
  found.where = raw.content().where;
  found.name = name_of(*reinterpret_cast<const task*>(who + 1), found.id);
  return found;
}

const agent* holder_of(const fiber_record& waiting) noexcept {
  if (waiting.state != fiber_record::status::waiting) return nullptr;
  if (waiting.kind == wait_kind::join)
    return static_cast<const agent*>(waiting.object) - 1;  // a task is directly behind its agent
  if (waiting.kind != wait_kind::mutex) return nullptr;
  const auto& word = *static_cast<const std::atomic<std::uintptr_t>*>(waiting.object);
  return reinterpret_cast<const agent*>(word.load(std::memory_order_relaxed) & ~std::uintptr_t{1});  // hint
}

}  // namespace ulexite::detail
