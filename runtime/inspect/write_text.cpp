#include <ulexite/runtime/inspect/report.hpp>

#include <ostream>
#include <ranges>

namespace ulexite::detail {
namespace {

void print_worker(std::ostream& out, const worker_report& worker) {
  out << "  worker " << worker.index << ": ";
  if (worker.runs.id != 0) {
    out << "runs " << describe(worker.runs);
    if (worker.unswitched != 0) out << " for " << describe_time(worker.unswitched) << " without a switch";
    if (const std::string where = describe(worker.runs.where); !where.empty()) out << ", spawned at " << where;
  } else {
    out << (worker.busy ? "looks for work, or runs a job" : "sleeps");
  }
  out << "; " << worker.queued << " queued, " << worker.dispatches << " dispatches\n";
  write_frames(out, worker.frames);
}

constexpr std::size_t most_threads = 16;

template <class Describe>
void print_threads(std::ostream& out, const std::vector<thread_report>& threads, const char* others,
                   Describe&& describe) {
  for (const thread_report& each : threads | std::views::take(most_threads)) {
    out << "  " << describe(each) << '\n';
    write_frames(out, each.frames);
  }
  if (threads.size() > most_threads) out << "  and " << threads.size() - most_threads << others << '\n';
}

std::string describe_call(const thread_report& thread) {
  const std::string who = thread.fiber.id != 0 ? "of " + describe(thread.fiber) : "that its caller has given up,";
  return "thread " + std::to_string(thread.number) + ": runs a blocking call " + who + " for " +
         describe_time(thread.time);
}

std::string describe_thread_wait(const thread_report& thread) {
  return "plain thread " + std::to_string(thread.number) + ": " + describe_state(thread.fiber, thread.time);
}

void print_group(std::ostream& out, const fiber_group& group) {
  const fiber_record& fiber = group.oldest;
  out << '\n' << describe(fiber);
  if (group.count > 1) {
    out << " and " << group.count - 1 << " more alike (";
    for (std::size_t i = 0; i < group.others.size(); ++i) out << (i == 0 ? "#" : ", #") << group.others[i];
    out << (group.count - 1 > group.others.size() ? ", ...)" : ")");
  }
  out << ": " << describe_state(fiber, group.least_waited) << '\n';
  if (const std::string where = describe(fiber.where); !where.empty()) out << "  spawned at " << where << '\n';
  if (fiber.spawner != 0) out << "  spawned by fiber #" << fiber.spawner << '\n';
  if (fiber.held_locks != 0) out << "  holds " << fiber.held_locks << (fiber.held_locks == 1 ? " lock\n" : " locks\n");
  if (fiber.stop_requested) out << "  was asked to stop\n";
  if (fiber.coroutine) out << "  a coroutine: no stack while it waits\n";
  if (fiber.frame) out << "  stack: " << fiber.stack_depth << " of " << fiber.stack_size << " bytes deep\n";
  write_frames(out, group.frames);
}

}  // namespace

// Also without endless names.
void write_frames(std::ostream& out, std::span<void* const> frames) {
  constexpr std::size_t longest = 160;
  bool own = true;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::string text = describe_frame(frames[i]);
    own = own && text.starts_with("ulexite::detail::") && i + 1 < frames.size();
    if (own) continue;
    if (const std::size_t place = text.rfind(" ("); text.size() > longest && place != std::string::npos)
      text.replace(longest - 40, place - (longest - 40), "...");
    out << "    " << i << "  " << text << '\n';
  }
}

void write_text(std::ostream& out, const runtime_report& report) {
  const runtime_metrics& m = report.metrics;
  out << "ulexite runtime: " << m.fibers_live << (m.fibers_live == 1 ? " fiber, " : " fibers, ") << m.workers
      << (m.workers == 1 ? " worker (" : " workers (") << m.workers_sleeping << " asleep), " << m.queued_outside
      << " in the shared queue, " << m.blocking_threads << " threads for blocking calls";
  if (m.blocking_queued != 0)
    out << " (" << m.blocking_queued << (m.blocking_queued == 1 ? " call waits for one)" : " calls wait for one)");
  out << '\n';
  for (const worker_report& worker : report.workers) print_worker(out, worker);
  print_threads(out, report.calls, " more blocking calls", describe_call);
  print_threads(out, report.waiting_threads, " more plain threads that wait", describe_thread_wait);
  write_fibers(out, report);
}

void write_fibers(std::ostream& out, const runtime_report& report) {
  for (const std::string& finding : report.findings) out << "found: " << finding << '\n';
  if (report.fibers_unseen) out << "The fibers cannot be looked at: this kernel refuses membarrier(2).\n";
  for (const fiber_group& group : report.groups) print_group(out, group);
  if (report.left_out != 0)
    out << "\n" << report.left_out << " more fibers are in other groups (dump_options::max_groups)\n";
}

}  // namespace ulexite::detail
