#include <ulexite/base/panic.hpp>
#include <ulexite/base/sanitizers.hpp>
#include <ulexite/runtime/inspect/deadlock.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>

namespace ulexite::detail {
namespace {

// The number of threads of this process; 0 if it cannot be read.
std::size_t count_threads() {
  std::error_code error;
  std::size_t count = 0;
  for (auto at = std::filesystem::directory_iterator("/proc/self/task", error); !error && at != end(at);
       at.increment(error))
    ++count;
  return error ? 0 : count;
}

// Whether each fiber waits for something that only another fiber, or a thread, can provide. Fibers of one group wait in
// one way, but some may have a timer.
bool all_wait_for_fibers(const runtime_report& report) {
  return std::ranges::all_of(report.groups, [](const fiber_group& group) {
    return group.oldest.state == fiber_record::status::waiting && !group.any_timed &&
           !waits_for_outside(group.oldest.kind);
  });
}

// Whether all threads of the process belong to this runtime, or wait for a fiber. ThreadSanitizer has one of its own.
bool no_thread_can_help(runtime_state& rt) {
  const std::size_t own = rt.threads_if_quiet();
  return own != 0 && count_threads() == own + signal_dump::threads() + thread_agent::count_blocked() + ULEXITE_TSAN;
}

void tell(const runtime_report& report, bool all) {
  write_report([&](std::ostream& text) {
    text << "ulexite: "
         << (all ? "deadlock: every fiber waits, and nothing can end a wait\n"
                 : "deadlock: fibers wait for each other in a circle\n");
    write_text(text, report);
  });
}

}  // namespace

bool detect_deadlock(runtime_state& rt) try {
  if (rt.threads_if_quiet() == 0) return false;
  const std::uint64_t before = rt.metrics().dispatches;
  const runtime_report report = collect(rt, {.backtraces = false});
  if (report.metrics.fibers_live == 0 || report.fibers_unseen) return false;
  const bool alone = report.left_out == 0 && all_wait_for_fibers(report);
  const bool all = alone && no_thread_can_help(rt);
  if ((!all && !report.has_circle) || rt.metrics().dispatches != before) return false;
  tell(collect(rt, {}), all);
  if (rt.options.on_deadlock != deadlock_action::fail) return true;
  // Another fiber may ask one of the circle to stop.
  if (!alone && !report.has_certain_circle) return true;
  rt.handle.deadlocked.store(true, std::memory_order_relaxed);  // published by the stop
  rt.request_stop();
  return true;
} catch (const std::exception& refused) {
  warn("the search for a deadlock failed: %s", refused.what());
  return true;
}

}  // namespace ulexite::detail
