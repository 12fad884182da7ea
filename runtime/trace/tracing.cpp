// The recording of a worker's events. It costs nothing while it is off, because each step tests it together with all
// other reasons (interrupts.hpp).

#include <ulexite/runtime/trace.hpp>
#include <ulexite/runtime/trace/probes.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <cstring>

namespace ulexite::detail {
namespace {

// The size of the name in a trace. A long name is cut before a character of UTF-8, not inside it.
std::size_t traced_size(const char* name) noexcept {
  constexpr std::size_t most = 36, longest_character = 4;
  const std::size_t whole = ::strnlen(name, most + 1);
  if (whole <= most) return whole;
  for (std::size_t cut = most; cut > most - longest_character; --cut)
    if ((static_cast<unsigned char>(name[cut]) & 0xc0) != 0x80) return cut;
  return most;  // not UTF-8
}

}  // namespace

// The recorder is set before the request, so a worker that sees the request finds it.
void scheduler::start_recording(recorder& into) noexcept {
  activity.set_recorder(into);
  ask(request::traced);
}

// The worker notices a start at its next dispatch (answer_requests), and the end here.
void scheduler::record(trace_kind kind, std::uint64_t value, std::uint8_t detail) noexcept {
  // The end of a recording is noticed here: a thread has withdrawn the request, and this event is not recorded.
  recorder& into = *activity.recorder_now();
  if (!asked(request::traced)) {
    into.times.stop();
    return note(request::traced, false);
  }
  const task* const current = running();
  const std::uint64_t now = clock_ticks();
  // Both kinds end the run of the last fiber; a dispatch also begins a run.
  if (kind == trace_kind::dispatch || kind == trace_kind::left) {
    into.times.switched(now, kind == trace_kind::dispatch);
    record_waits(into.times, time_stamp(now), kind == trace_kind::dispatch ? running() : nullptr);
  }
  into.add(now, kind, value, detail);
  fire_probe(kind, index_, current ? current->id : 0, value, detail);
}

// The fiber that yielded waits for a worker again; `next` no longer does.
void scheduler::record_waits(run_times& into, std::uint32_t now, task* next) const noexcept {
  const post_switch& action = switch_.action;
  if (action.what == post_switch::yielding || action.what == post_switch::yielding_to_woken)
    action.who->stamp_runnable(now);
  if (std::uint32_t since; next && next->take_runnable(since)) into.waited(nanoseconds_between(since, now));
}

// Called before the worker completes the switch of the fiber that has left.
std::uint8_t scheduler::how_it_left() const noexcept {
  switch (switch_.action.what) {
    case post_switch::nothing: return departure_note::nothing;
    case post_switch::waiting:
      return departure_note::waits | static_cast<std::uint8_t>(wait_mode::kind_of(switch_.action.who->wait_bits));
    case post_switch::ended: return departure_note::ended;
    default: return departure_note::yields;
  }
}

// For a switch to the worker's own stack: the run ends, and no other begins.
void scheduler::record_left() noexcept { record(trace_kind::left, 0, how_it_left()); }

// A coroutine has left the stack, on which another fiber may begin without a switch.
[[gnu::noinline]] void scheduler::record_left_stack(task& self, wait_mode mode, bool yields) noexcept {
  if (yields) self.stamp_runnable(time_stamp(clock_ticks()));
  const auto kind = static_cast<std::uint8_t>(wait_mode::kind_of(mode.bits));
  record(trace_kind::left, 0,
         yields ? departure_note::yields : static_cast<std::uint8_t>(departure_note::waits | kind));
}

// The first dispatches record the place and the name, until the fiber has waited once.
[[gnu::noinline]] void scheduler::record_dispatch() noexcept {
  const task* const current = running();
  record(trace_kind::dispatch, current ? current->id : 0, how_it_left());
  if (!current || current->wait_bits != 0) return;
  if (current->where.known()) {
    const std::uintptr_t place = current->where.bits();
    record(trace_kind::place, place, static_cast<std::uint8_t>(place >> 48));
  }
  if (!current->name) return;
  // An event has room for 6 bytes of text.
  std::size_t left = traced_size(current->name);
  for (std::uint8_t part = 0; left > 0; ++part) {
    // The number of the part is in `detail`, so a reader can put the name together again.
    const std::size_t bytes = left < 6 ? left : 6;
    std::uint64_t text = 0;
    std::memcpy(&text, current->name + 6 * part, bytes);
    record(trace_kind::name, text, part);
    left -= bytes;
  }
}

// For trace_span. The name is a literal, so its address is enough.
void record_span(const char* name, bool begins) noexcept {
  scheduler* const here = this_scheduler();
  if (here && here->traced())
    here->record(begins ? trace_kind::span_begin : trace_kind::span_end, reinterpret_cast<std::uintptr_t>(name), 0);
}

}  // namespace ulexite::detail
