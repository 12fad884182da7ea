// When the workers record, and where: into a trace, or only into the times.

#include <ulexite/runtime/inspect/trace.hpp>
#include <ulexite/runtime/trace/probes.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace ulexite::detail {
namespace {

// Uses recorders of an earlier trace again, if they have this size; their older events are skipped. Other recorders
// stay too, because a worker may still write its last event into one.
void provide_recorders(trace_state& trace, std::size_t workers, std::size_t events) {
  for (auto group = trace.recorders.begin(); group != trace.recorders.end();) {
    const auto next = group + static_cast<std::ptrdiff_t>(workers);
    if ((*group)->holds(events)) {
      std::rotate(group, next, trace.recorders.end());
      return;
    }
    group = next;
  }
  std::vector<std::unique_ptr<recorder>> fresh;
  for (std::size_t i = 0; i < workers; ++i) fresh.push_back(std::make_unique<recorder>(i, events, *trace.times[i]));
  trace.recorders.reserve(trace.recorders.size() + fresh.size());
  for (auto& each : fresh) trace.recorders.push_back(std::move(each));
}

// The times cover the whole life of the runtime, for all users of them.
void provide_times(trace_state& trace, std::size_t workers) {
  if (!trace.measurers.empty()) return;
  measure_clock();
  std::vector<std::unique_ptr<recorder>> fresh;
  while (trace.times.size() < workers) trace.times.push_back(std::make_unique<run_times>());
  for (std::size_t i = 0; i < workers; ++i) fresh.push_back(std::make_unique<recorder>(i, 0, *trace.times[i]));
  trace.measurers = std::move(fresh);
}

// Called with the trace's mutex held.
void update_recording(runtime_state& rt) noexcept {
  trace_state& trace = rt.trace;
  const bool times_only = !trace.on && (trace.measured || trace.probed);
  trace.recording.store(trace.on || times_only, std::memory_order_release);  // pairs with is_recording
  for (std::size_t i = 0; i < rt.threads.most(); ++i) {
    if (trace.on) {
      rt.schedulers[i]->start_recording(*trace.recorders[trace.recorders.size() - rt.threads.most() + i]);
    } else if (times_only) {
      rt.schedulers[i]->start_recording(*trace.measurers[i]);
    } else {
      rt.schedulers[i]->withdraw(request::traced);
    }
  }
}

}  // namespace

void measure_times(runtime_state& rt) {
  const std::lock_guard lock(rt.trace.mutex);
  provide_times(rt.trace, rt.threads.most());
  rt.trace.measured = true;
  update_recording(rt);
}

runtime_times times_of(runtime_state& rt) noexcept {
  runtime_times total;
  const std::lock_guard lock(rt.trace.mutex);
  for (const auto& each : rt.trace.times) each->add_to(total);
  return total;
}

void poll_probes(runtime_state& rt) noexcept try {
  trace_state& trace = rt.trace;
  const bool wanted = probes_wanted();
  if (wanted == trace.probed) return;  // this thread's
  const std::lock_guard lock(trace.mutex);
  provide_times(trace, rt.threads.most());
  trace.probed = wanted;
  update_recording(rt);
} catch (const std::bad_alloc&) {
  // At the next tick.
}

bool start_trace(runtime_state& rt, const trace_options& options) {
  if (options.events_per_worker > trace_options::max_events)
    throw std::invalid_argument("trace_options::events_per_worker is " + std::to_string(options.events_per_worker) +
                                "; the most is " + std::to_string(trace_options::max_events));
  trace_state& trace = rt.trace;
  const std::lock_guard lock(trace.mutex);
  if (trace.on) return false;
  provide_times(trace, rt.threads.most());
  provide_recorders(trace, rt.threads.most(), std::max<std::size_t>(options.events_per_worker, 2));
  trace.first_time = now_ns();
  trace.first_ticks = clock_ticks();
  trace.on = true;
  update_recording(rt);
  return true;
}

std::vector<trace_event> recorded_events(const runtime_state& rt, std::size_t worker) {
  const trace_state& trace = rt.trace;
  const std::size_t first = trace.recorders.size() - rt.threads.most();
  std::vector<trace_event> events = trace.recorders[first + worker]->read();
  std::erase_if(events, [&](const trace_event& each) { return each.ticks < trace.first_ticks; });
  return events;
}

void add_spawners(const std::vector<trace_event>& of_worker, spawner_map& spawners) {
  std::uint64_t running = 0;
  for (const trace_event& event : of_worker) {
    if (event.kind == trace_kind::dispatch) running = event.value;
    if (event.kind == trace_kind::left) running = 0;  // a stolen branch is spawned by its thief, on no fiber
    if (event.kind == trace_kind::spawn && running != 0) spawners[event.value] = running;
  }
}

spawner_map recorded_spawners(runtime_state& rt) {
  spawner_map spawners;
  const std::lock_guard lock(rt.trace.mutex);
  if (!rt.trace.on) return spawners;
  for (std::size_t i = 0; i < rt.threads.most(); ++i) add_spawners(recorded_events(rt, i), spawners);
  return spawners;
}

bool is_tracing(runtime_state& rt) noexcept {
  const std::lock_guard lock(rt.trace.mutex);
  return rt.trace.on;
}

void stop_trace(runtime_state& rt) noexcept {
  const std::lock_guard lock(rt.trace.mutex);
  if (std::exchange(rt.trace.on, false)) rt.trace.last_ticks = clock_ticks();
  update_recording(rt);
}

}  // namespace ulexite::detail
