#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>
#include <ulexite/runtime/inspect/stuck.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <ostream>
#include <stdexcept>
#include <string>

namespace ulexite::detail {
namespace {

constexpr std::chrono::milliseconds usual_limit{10'000};

void tell_of_stuck(const scheduler& worker, std::uint32_t milliseconds) {
  worker_report seen = look_at(worker);
  seen.unswitched = milliseconds;
  seen.frames = frames_of(worker.activity.thread.get());
  write_report([&](std::ostream& text) {
    text << "ulexite: " << describe_stuck(seen) << '\n';
    write_frames(text, seen.frames);
    if (seen.frames.empty())
      text << "    no backtrace: its thread does not answer SIGURG, or the program handles that\n";
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
