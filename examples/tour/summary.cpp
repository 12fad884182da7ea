#include "summary.hpp"

#include "text.hpp"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <utility>

namespace tour {

void summary::add(std::string part, result result) {
  table_.push_back({part, std::move(result.done), "ok: " + result.check, duration(result.seconds), result.rate});
  if (!result.details.empty()) notes_.push_back({std::move(part), std::move(result.details)});
}

void summary::add_failure(std::string part, std::string why) {
  table_.push_back({std::move(part), std::move(why), "FAILED", "-", "-"});
}

bool summary::add_metrics(const ulexite::runtime_metrics& metrics) {
  const auto count = [](std::uint64_t number, const std::string& what) {
    return right(grouped(number), 13) + " " + what;
  };
  notes_.push_back(
      {"what the runtime counted, on " + grouped(metrics.workers) + " worker threads",
       {count(metrics.fibers_spawned, "fibers spawned, of which " + grouped(metrics.fibers_ended) + " have ended"),
        count(metrics.dispatches, "times that a fiber was given a worker"),
        count(metrics.steals, "times that a worker without work took some from another"),
        count(metrics.parks, "times that a worker without work went to sleep"),
        count(metrics.wakes, "times that a sleeping worker was woken, or a new one started"),
        count(metrics.events, "events that sockets and timers brought"),
        count(metrics.lost_wakeups, "wake-ups that were lost and rescued: anything but 0 is a defect")}});
  return metrics.lost_wakeups == 0;
}

void summary::print(std::ostream& out) const {
  const auto width = [&](std::string row::* column) {
    std::size_t widest = 0;
    for (const row& line : table_) widest = std::max(widest, (line.*column).size());
    return widest;
  };
  const std::size_t part = width(&row::part), done = width(&row::done), check = width(&row::check),
                    time = width(&row::time), rate = width(&row::rate);
  for (const row& line : table_) {
    out << left(line.part, part) << "  " << left(line.done, done) << "  " << left(line.check, check) << "  "
        << right(line.time, time) << "  " << right(line.rate, rate) << '\n';
    if (&line == &table_.front()) out << std::string(part + done + check + time + rate + 8, '-') << '\n';
  }
  for (const notes& part_notes : notes_) {
    out << '\n' << part_notes.title << '\n';
    for (const std::string& text : part_notes.lines) out << "  " << text << '\n';
  }
}

}  // namespace tour
