#include <ulexite/fiber/unwind.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/trace.hpp>
#include <ulexite/runtime/inspect/wait_graph.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace ulexite::detail {
namespace {

// The largest batch of an inspection, for which a worker may wait. A block of the pool counts 1, with a fiber in it 8.
constexpr std::size_t most_at_a_time = 1024;
constexpr std::size_t most_edges = 200;

// Puts fibers into groups.
class grouping {
 public:
  grouping(const dump_options& options, std::uint32_t long_wait) : options_(options), long_wait_(long_wait) {}

  void add(const fiber_record& fiber) {
    std::array<void*, most_frames> room;
    std::size_t depth = 0;
    if (fiber.frame && options_.backtraces) depth = without_entry(unwind(fiber.frame, room));
    key k{fiber.state, fiber.kind, fiber.where, {room.begin(), room.begin() + depth}};
    const auto at = groups_.find(k);
    if (at == groups_.end() && groups_.size() >= options_.most_groups) {
      ++left_out_;
      return;
    }
    fiber_group& group = at == groups_.end() ? groups_[std::move(k)] : at->second;
    group.waited += fiber.waited;
    group.long_waits += fiber.state == fiber_record::status::waiting && fiber.waited > long_wait_;
    if (group.count++ == 0) {
      group.oldest = fiber;
      group.least_waited = fiber.waited;
      group.any_timed = fiber.timed;
      group.frames.assign(room.begin(), room.begin() + depth);
      return;
    }
    group.any_timed |= fiber.timed;
    group.least_waited = std::min(group.least_waited, fiber.waited);
    std::uint64_t other = fiber.id;
    if (fiber.waited > group.oldest.waited) {
      other = group.oldest.id;
      group.oldest = fiber;
    }
    if (group.others.size() < fiber_group::most_others) group.others.push_back(other);
  }

  void give(runtime_report& to) && {
    to.left_out = left_out_;
    for (auto& [k, group] : groups_) to.groups.push_back(std::move(group));
    std::ranges::sort(to.groups, [](const fiber_group& a, const fiber_group& b) {
      const auto rank = [](const fiber_group& g) {
        return std::tuple(g.oldest.state != fiber_record::status::waiting, -std::int64_t{g.oldest.waited}, g.oldest.id);
      };
      return rank(a) < rank(b);
    });
  }

 private:
  using key = std::tuple<fiber_record::status, wait_kind, spawn_place, std::vector<void*>>;

  const dump_options& options_;
  const std::uint32_t long_wait_;
  std::map<key, fiber_group> groups_;
  std::size_t left_out_ = 0;
};

// Holds the fibers back in small batches, so that no worker waits for long.
void collect_fibers(runtime_state& home, const dump_options& options, std::uint32_t long_wait, runtime_report& into) {
  grouping groups(options, long_wait);
  wait_graph graph;
  std::optional<inspection> look;
  std::size_t seen = 0;
  home.tasks->for_each_unlocked([&](agent& block) {
    if (!look || seen >= most_at_a_time) {
      look.reset();
      look.emplace(home);
      seen = 0;
    }
    ++seen;
    fiber_record fiber;
    if (!look->read(block, fiber)) return;
    seen += 7;
    if (fiber.state == fiber_record::status::waiting) ++into.waiting[static_cast<std::size_t>(fiber.kind)];
    groups.add(fiber);
    graph.add(fiber, holder_of(fiber));
  });
  look.reset();
  std::move(groups).give(into);
  const std::vector<wait_graph::circle> circles = graph.circles();
  into.findings = graph.findings(circles);
  into.edges = graph.edges(most_edges);
  into.has_circle = std::ranges::any_of(circles, wait_graph::lasts);
}

worker_report look_at(const scheduler& worker) {
  worker_report report;
  report.index = worker.index();
  report.busy = worker.activity().busy();
  report.runs = running_on(worker);
  report.dispatches = worker.counters().dispatches.get();
  report.queued = worker.queued();
  const std::int64_t since = worker.activity().unswitched_since();
  if (since != 0) report.unswitched = static_cast<std::uint32_t>((now_ns() - since) / 1'000'000);
  return report;
}

}  // namespace

runtime_report collect(runtime_state& home, const dump_options& options, std::uint32_t long_wait) {
  runtime_report report;
  report.metrics = home.metrics();
  for (const auto& worker : home.schedulers)
    if (worker->activity().busy() || worker->counters().parks.get() + worker->counters().dispatches.get() > 0)
      report.workers.push_back(look_at(*worker));
  if (inspection::possible()) {
    collect_fibers(home, options, long_wait, report);
  } else {
    report.fibers_unseen = true;
  }
  const auto spawners = recorded_spawners(home);
  for (fiber_group& group : report.groups)
    if (const auto known = spawners.find(group.oldest.id); known != spawners.end())
      group.oldest.spawner = known->second;
  return report;
}

}  // namespace ulexite::detail
