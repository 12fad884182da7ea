#include <ulexite/fiber/unwind.hpp>
#include <ulexite/runtime/inspect/interrupt.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/trace.hpp>
#include <ulexite/runtime/inspect/wait_graph.hpp>
#include <ulexite/runtime/wait/blocked_thread.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>

#include <sys/syscall.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

constexpr std::size_t held_at_a_time = 16 * 1024;  // bytes of blocks, so at most 128 fibers
constexpr std::size_t most_edges = 100;
constexpr std::size_t most_findings = 100;
constexpr std::uint32_t stuck_for = 1000;  // milliseconds

// Puts fibers into groups.
class grouping {
 public:
  grouping(const dump_options& options, std::uint32_t long_wait) : options_(options), long_wait_(long_wait) {}

  void add(const fiber_record& fiber) {
    std::array<void*, most_frames> room;
    std::size_t depth = 0;
    if (fiber.frame && options_.backtraces) depth = without_entry(unwind(fiber.frame, room));
    if (options_.backtraces)
      for (const coroutine_frame* at = fiber.coroutine; at && depth < room.size(); at = at->parent)
        room[depth++] =
            reinterpret_cast<char*>(at->resume) + 1;  // as a return address: behind the function's beginning
    // In parentheses, because a list of two pointers would be the vector's content.
    key k(fiber.state, fiber.kind, fiber.where, std::vector<void*>(room.begin(), room.begin() + depth));
    fiber_group one{.oldest = fiber,
                    .frames = {},
                    .count = 1,
                    .least_waited = fiber.waited,
                    .waited = fiber.waited,
                    .long_waits = fiber.state == fiber_record::status::waiting && fiber.waited > long_wait_,
                    .any_timed = fiber.timed};
    if (const auto at = groups_.find(k); at != groups_.end()) return unite(at->second, one);
    if (groups_.size() >= options_.max_groups) {
      ++left_out_;
      return;
    }
    one.frames.assign(room.begin(), room.begin() + depth);
    groups_.emplace(std::move(k), std::move(one));
  }

  // Without an inspection, because it looks for the names of frames.
  void give(runtime_report& to) && {
    to.left_out = left_out_;
    for (auto& [k, group] : unite_alike()) to.groups.push_back(std::move(group));
    std::ranges::sort(to.groups, [](const fiber_group& a, const fiber_group& b) {
      const auto rank = [](const fiber_group& g) {
        return std::tuple(g.oldest.state != fiber_record::status::waiting, -std::int64_t{g.oldest.waited}, g.oldest.id);
      };
      return rank(a) < rank(b);
    });
  }

 private:
  using key = std::tuple<fiber_record::status, wait_kind, spawn_place, std::vector<void*>>;

  static void unite(fiber_group& group, fiber_group& with) {
    group.count += with.count;
    group.waited += with.waited;
    group.long_waits += with.long_waits;
    group.any_timed |= with.any_timed;
    group.least_waited = std::min(group.least_waited, with.least_waited);
    with.others.push_back(with.oldest.id);
    if (with.oldest.waited > group.oldest.waited) {
      with.others.back() = group.oldest.id;
      group.oldest = std::move(with.oldest);
    }
    const std::size_t most = fiber_group::most_others - std::min(fiber_group::most_others, group.others.size());
    const auto last = with.others.end();
    group.others.insert(group.others.end(), last - static_cast<std::ptrdiff_t>(std::min(most, with.others.size())),
                        last);
  }

  // The library has several paths into the same wait. They make no difference.
  std::map<key, fiber_group> unite_alike() {
    std::map<key, fiber_group> united;
    for (auto& [k, group] : groups_) {
      const auto outer = std::ranges::find_if_not(
          group.frames, [](const void* frame) { return describe_frame(frame).starts_with("ulexite::detail::"); });
      key of = k;
      std::get<std::vector<void*>>(of).assign(outer, group.frames.end());
      if (const auto [at, fresh] = united.try_emplace(std::move(of), std::move(group)); !fresh)
        unite(at->second, group);
    }
    return united;
  }

  const dump_options& options_;
  const std::uint32_t long_wait_;
  std::map<key, fiber_group> groups_;
  std::size_t left_out_ = 0;
};

// Holds the fibers in small batches, so that no worker waits for long. The blocks of a slab come in the order of their
// addresses.
void collect_fibers(runtime_state& rt, const dump_options& options, std::uint32_t long_wait, runtime_report& into) {
  grouping groups(options, long_wait);
  wait_graph graph;
  std::optional<inspection> look(std::in_place, rt, std::unique_lock(rt.world.inspecting));
  rt.tasks->for_each_unlocked([&](agent& block) {
    look->hold(block, held_at_a_time);
    fiber_record fiber;
    if (!look->read(block, fiber)) return;
    if (fiber.state == fiber_record::status::waiting) ++into.waiting[static_cast<std::size_t>(fiber.kind)];
    groups.add(fiber);
    graph.add(fiber, holder_of(fiber));
  });
  look.reset();
  std::move(groups).give(into);
  const std::vector<wait_graph::circle> circles = graph.circles();
  std::ranges::move(graph.findings(circles), std::back_inserter(into.findings));
  if (const std::size_t all = into.findings.size(); all > most_findings) {
    into.findings.resize(most_findings);
    into.findings.push_back("and " + std::to_string(all - most_findings) + " more");
  }
  into.edges = graph.edges(circles, most_edges);
  into.has_circle = std::ranges::any_of(circles, wait_graph::lasts);
  into.has_certain_circle = std::ranges::any_of(circles, wait_graph::is_certain);
}

void collect_workers(runtime_state& rt, const dump_options& options, runtime_report& into) {
  for (const auto& worker : rt.schedulers) {
    if (!worker->activity.busy() && worker->counters().parks.get() + worker->counters().dispatches.get() == 0) continue;
    worker_report& report = into.workers.emplace_back(look_at(*worker));
    if (!report.stuck) continue;
    into.findings.push_back(describe_stuck(report));
    if (options.stuck_backtraces) report.frames = frames_of(worker->activity.thread.get());
  }
}

std::uint32_t milliseconds_since(std::int64_t begin) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((now_ns() - begin) / 1'000'000, 0, UINT32_MAX));
}

void add_frames(std::vector<thread_report>& threads, const dump_options& options) {
  constexpr std::size_t most = 8;  // a thread that does not answer takes some tenths of a second
  std::ranges::sort(threads, std::greater(), &thread_report::time);
  for (thread_report& each : threads | std::views::take(options.stuck_backtraces ? most : 0))
    if (each.time >= stuck_for) each.frames = frames_of(each.number);
}

void collect_calls(runtime_state& rt, const dump_options& options, runtime_report& into) {
  rt.blocking->for_each_call([&](const blocking_pool::member& each) {
    thread_report& report = into.calls.emplace_back();
    report.number = each.thread;
    report.time = milliseconds_since(each.since);
    agent* const caller = each.work->caller;
    if (!caller || caller->kind != agent_kind::fiber) return;
    const task& fiber = caller->fiber();
    report.fiber.id = fiber.id;
    report.fiber.where = fiber.where;
    report.fiber.name = name_of(fiber, fiber.id);
  });
  add_frames(into.calls, options);
}

void collect_waiting_threads(const dump_options& options, runtime_report& into) {
  blocked_thread::for_each([&](const blocked_thread::record& each) {
    const wait_kind kind = wait_mode::kind_of(each.mode.bits);
    const bool timed = (each.mode.bits & wait_mode::timed_bit) != 0;
    const bool exists = ::syscall(SYS_tgkill, ::getpid(), each.thread, 0) == 0;
    if (!exists) return;
    thread_report& report = into.waiting_threads.emplace_back();
    report.number = each.thread;
    report.time = milliseconds_since(each.since);
    report.fiber.state = fiber_record::status::waiting;
    report.fiber.kind = kind;
    report.fiber.timed = timed;
    report.fiber.object = each.mode.object;
    report.fiber.waited = report.time;
  });
  add_frames(into.waiting_threads, options);
}

}  // namespace

worker_report look_at(const scheduler& worker) {
  worker_report report;
  report.index = worker.index();
  report.busy = worker.activity.busy();
  report.runs = running_on(worker);
  report.dispatches = worker.counters().dispatches.get();
  report.queued = worker.queued();
  const std::int64_t since = worker.runtime().monitor.stuck_since(worker.index());
  if (since != 0) report.unswitched = static_cast<std::uint32_t>((now_ns() - since) / 1'000'000);
  report.stuck = report.busy && report.unswitched >= stuck_for;
  return report;
}

std::vector<void*> frames_of(int thread) {
  std::vector<void*> frames(most_frames);
  frames.resize(without_entry(unwind_running(thread, frames)));
  return frames;
}

runtime_report collect(runtime_state& rt, const dump_options& options, std::uint32_t long_wait) {
  runtime_report report;
  report.metrics = rt.metrics();
  report.tracing = is_tracing(rt);
  collect_workers(rt, options, report);
  collect_calls(rt, options, report);
  collect_waiting_threads(options, report);
  if (inspection::possible()) {
    collect_fibers(rt, options, long_wait, report);
  } else {
    report.fibers_unseen = true;
  }
  const auto spawners = recorded_spawners(rt);
  for (fiber_group& group : report.groups)
    if (const auto known = spawners.find(group.oldest.id); known != spawners.end())
      group.oldest.spawner = known->second;
  return report;
}

}  // namespace ulexite::detail
