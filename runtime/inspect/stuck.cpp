#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/inspect/interrupt.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>
#include <ulexite/runtime/inspect/stuck.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <ostream>
#include <stdexcept>
#include <string>

namespace ulexite::detail {
namespace {

constexpr std::chrono::milliseconds usual_limit{10'000};

void tell_of_stuck(const scheduler& worker, std::uint32_t milliseconds) {
  const fiber_record runs = running_on(worker);
  std::array<void*, most_frames> frames;
  const std::size_t depth = without_entry(unwind_running(worker.activity().thread(), frames));
  report_plainly([&](std::ostream& text) {
    text << "ulexite: worker " << worker.index() << " has not switched for " << describe_time(milliseconds)
         << ": it runs " << (runs.id != 0 ? describe(runs) : "a job");
    if (const std::string where = describe(runs.where); !where.empty()) text << ", spawned at " << where;
    text << "; " << worker.queued() << " queued behind it\n";
    write_frames(text, std::span(frames).first(depth));
    if (depth == 0) text << "    no backtrace: its thread does not answer SIGURG, or the program handles that\n";
  });
}

}  // namespace

std::chrono::milliseconds stuck_after(const runtime_options& options) {
  if (options.stuck_after.count() < 0)
    throw std::invalid_argument(
        "runtime_options::stuck_after is negative: " + std::to_string(options.stuck_after.count()) + " ms");
  if (options.stuck_after.count() != 0)
    return std::min<std::chrono::milliseconds>(options.stuck_after,
                                               std::chrono::hours(24 * 365));  // its nanoseconds fit
  return std::getenv("ULEXITE_DUMP") ? usual_limit : std::chrono::milliseconds(0);
}

void report_stuck_worker(scheduler& worker, std::int64_t nanoseconds) noexcept try {
  tell_of_stuck(worker, static_cast<std::uint32_t>(nanoseconds / 1'000'000));
} catch (const std::exception& refused) {
  warn("a stuck worker could not be reported: %s", refused.what());
}

}  // namespace ulexite::detail
