#include <ulexite/runtime/inspect/json.hpp>
#include <ulexite/runtime/inspect/report.hpp>

#include <ostream>
#include <string_view>

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

void write_worker(std::ostream& out, const worker_report& worker) {
  json object(out, '{', '}');
  object.number("index", worker.index);
  object.flag("sleeps", !worker.busy);
  object.number("dispatches", worker.dispatches);
  object.number("queued", worker.queued);
  object.number("unswitched_ms", worker.unswitched);
  if (worker.runs.id == 0) return;
  json runs(object.key("runs"), '{', '}');
  write_identity(runs, worker.runs);
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
  object.number("stack_depth", fiber.stack_depth);
  object.number("stack_size", fiber.stack_size);
  {
    json others(object.key("others"), '[', ']');
    for (const std::uint64_t id : group.others) others.next() << id;
  }
  json frames(object.key("frames"), '[', ']');
  for (const void* const frame : group.frames) json::text(frames.next(), describe_frame(frame));
}

void write_edge(std::ostream& out, const wait_edge& edge) {
  json object(out, '{', '}');
  object.number("waiter", edge.waiter);
  object.number("holder", edge.holder);
  if (!edge.waiter_name.empty()) object.string("waiter_name", edge.waiter_name);
  if (!edge.holder_name.empty()) object.string("holder_name", edge.holder_name);
  object.string("waits", edge.what);
}

}  // namespace

void write_json(std::ostream& out, const runtime_report& report) {
  {
    json object(out, '{', '}');
    const runtime_metrics& m = report.metrics;
    object.number("fibers_live", m.fibers_live);
    object.number("fibers_spawned", m.fibers_spawned);
    object.number("dispatches", m.dispatches);
    object.number("queued_outside", m.queued_outside);
    object.number("blocking_threads", m.blocking_threads);
    object.flag("fibers_unseen", report.fibers_unseen);
    {
      json workers(object.key("workers"), '[', ']');
      for (const worker_report& worker : report.workers) write_worker(workers.next(), worker);
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
