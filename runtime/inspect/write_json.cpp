#include <ulexite/runtime/inspect/json.hpp>
#include <ulexite/runtime/inspect/report.hpp>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace ulexite::detail {
namespace {

std::string_view name_of_state(fiber_record::status state) noexcept {
  switch (state) {
    case fiber_record::status::fresh: return "fresh";
    case fiber_record::status::ready: return "ready";
    case fiber_record::status::waiting: return "waiting";
    case fiber_record::status::running: return "running";
  }
  return "unknown";
}

void write_identity(json& object, const fiber_record& fiber) {
  object.number("id", fiber.id);
  if (!fiber.name.empty()) object.string("name", fiber.name);
  if (const std::string where = describe(fiber.where); !where.empty()) object.string("spawned_at", where);
}

// The age of this process in milliseconds; 0 if /proc cannot be read.
std::uint64_t age_of_process() {
  std::ifstream file("/proc/self/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.erase(0, text.rfind(')') + 1));  // of which the first is the third of proc(5)
  for (int i = 3; i < 22; ++i) fields >> text;
  std::uint64_t start = 0;  // in ticks after the system's boot
  timespec now{};
  if (!(fields >> start) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const auto age = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 -
                   static_cast<std::int64_t>(start) * 1000 / ::sysconf(_SC_CLK_TCK);
  return age > 0 ? static_cast<std::uint64_t>(age) : 0;
}

void write_process(json& object) {
  object.string("program", program_invocation_short_name);
  object.number("pid", static_cast<std::uint64_t>(::getpid()));
  object.number("age_ms", age_of_process());
}

void write_frames_as_array(json& object, std::span<void* const> addresses) {
  json frames(object.key("frames"), '[', ']');
  for (const void* const frame : addresses) json::text(frames.next(), describe_frame(frame));
}

void write_worker(std::ostream& out, const worker_report& worker) {
  json object(out, '{', '}');
  object.number("index", worker.index);
  object.flag("sleeps", !worker.busy);
  object.number("dispatches", worker.dispatches);
  object.number("queued", worker.queued);
  object.number("unswitched_ms", worker.unswitched);
  object.flag("stuck", worker.stuck);
  if (!worker.frames.empty()) write_frames_as_array(object, worker.frames);
  if (worker.runs.id == 0) return;
  json runs(object.key("runs"), '{', '}');
  write_identity(runs, worker.runs);
}

void write_call(std::ostream& out, const thread_report& thread) {
  json object(out, '{', '}');
  object.number("thread", static_cast<std::uint64_t>(thread.number));
  object.number("runs_ms", thread.time);
  if (thread.fiber.id != 0) write_identity(object, thread.fiber);
  if (!thread.frames.empty()) write_frames_as_array(object, thread.frames);
}

void write_waiting_thread(std::ostream& out, const thread_report& thread) {
  json object(out, '{', '}');
  object.number("thread", static_cast<std::uint64_t>(thread.number));
  object.string("waits", describe_wait(thread.fiber));
  object.number("waited_ms", thread.time);
  if (!thread.frames.empty()) write_frames_as_array(object, thread.frames);
}

void write_group(std::ostream& out, const fiber_group& group) {
  const fiber_record& fiber = group.oldest;
  json object(out, '{', '}');
  object.number("count", group.count);
  write_identity(object, fiber);
  if (fiber.spawner != 0) object.number("spawned_by", fiber.spawner);
  object.string("state", name_of_state(fiber.state));
  if (fiber.state == fiber_record::status::waiting) {
    object.string("waits", describe_wait(fiber));
    object.number("waited_ms", fiber.waited);
    object.number("least_waited_ms", group.least_waited);
    object.number("total_waited_ms", group.waited);
  }
  object.number("held_locks", fiber.held_locks);
  object.flag("stop_requested", fiber.stop_requested);
  object.flag("coroutine", fiber.coroutine != nullptr);  // it waits without a stack
  object.number("stack_depth", fiber.stack_depth);
  object.number("stack_size", fiber.stack_size);
  {
    json others(object.key("others"), '[', ']');
    for (const std::uint64_t id : group.others) others.next() << id;
  }
  write_frames_as_array(object, group.frames);
}

// Of the waiters the oldest, which the others are like.
void write_edge(std::ostream& out, const wait_edge& edge) {
  json object(out, '{', '}');
  const fiber_record& waiter = edge.waiters.front();
  object.number("waiter", waiter.id);
  object.number("holder", edge.holder.id);
  if (!waiter.name.empty()) object.string("waiter_name", waiter.name);
  if (!edge.holder.name.empty()) object.string("holder_name", edge.holder.name);
  object.string("waits", describe_wait(waiter));
  object.number("waited_ms", waiter.waited);
  object.number("count", edge.count);
  object.number("holder_count", edge.holder_count);
  object.flag("in_circle", edge.in_circle);
  object.string("waiter_spawned_at", describe(waiter.where));
  object.string("holder_spawned_at", describe(edge.holder.where));
  if (edge.holder.id != 0) object.string("holder_state", describe_state(edge.holder, edge.holder.waited));
  json waiters(object.key("waiters"), '[', ']');
  for (const fiber_record& each : edge.waiters) {
    json one(waiters.next(), '{', '}');
    one.number("id", each.id);
    if (!each.name.empty()) one.string("name", each.name);
    one.number("waited_ms", each.waited);
  }
}

}  // namespace

void write_json(std::ostream& out, const runtime_report& report) {
  {
    json object(out, '{', '}');
    const runtime_metrics& m = report.metrics;
    write_process(object);
    object.number("fibers_live", m.fibers_live);
    object.number("fibers_spawned", m.fibers_spawned);
    object.number("dispatches", m.dispatches);
    object.number("queued_outside", m.queued_outside);
    object.number("blocking_threads", m.blocking_threads);
    object.flag("fibers_unseen", report.fibers_unseen);
    object.flag("tracing", report.tracing);
    {
      json workers(object.key("workers"), '[', ']');
      for (const worker_report& worker : report.workers) write_worker(workers.next(), worker);
    }
    {
      json calls(object.key("blocking_calls"), '[', ']');
      for (const thread_report& each : report.calls) write_call(calls.next(), each);
    }
    {
      json threads(object.key("waiting_threads"), '[', ']');
      for (const thread_report& each : report.waiting_threads) write_waiting_thread(threads.next(), each);
    }
    {
      json findings(object.key("findings"), '[', ']');
      for (const std::string& finding : report.findings) json::text(findings.next(), finding);
    }
    {
      json edges(object.key("edges"), '[', ']');
      for (const wait_edge& each : report.edges) write_edge(edges.next(), each);
    }
    {
      json groups(object.key("groups"), '[', ']');
      for (const fiber_group& group : report.groups) write_group(groups.next(), group);
    }
    object.number("left_out", report.left_out);
  }
  out << '\n';
}

}  // namespace ulexite::detail
