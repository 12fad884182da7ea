#include <ulexite/runtime/inspect/json.hpp>
#include <ulexite/runtime/inspect/report.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite {
namespace {

struct described {
  const char* name;
  std::uint64_t runtime_metrics::* value;
  bool grows;
  const char* help;
};

constexpr described all_metrics[] = {
    {"workers", &runtime_metrics::workers, false, "worker threads, without those that sleep above the limit"},
    {"workers_sleeping", &runtime_metrics::workers_sleeping, false, "workers that sleep"},
    {"workers_searching", &runtime_metrics::workers_searching, false, "workers that look for work"},
    {"fibers_live", &runtime_metrics::fibers_live, false, "fibers that were spawned and have not ended"},
    {"queued_outside", &runtime_metrics::queued_outside, false, "runnables in the shared queue"},
    {"blocking_threads", &runtime_metrics::blocking_threads, false, "threads for blocking calls, idle ones too"},
    {"blocking_queued", &runtime_metrics::blocking_queued, false, "blocking calls that wait for a thread"},
    {"channel_bytes", &runtime_metrics::channel_bytes, false,
     "bytes in blocks of more than 64 KiB of all channels of the process"},
    {"fibers_spawned", &runtime_metrics::fibers_spawned, true, "fibers spawned"},
    {"fibers_ended", &runtime_metrics::fibers_ended, true, "fibers ended"},
    {"dispatches", &runtime_metrics::dispatches, true, "times that a fiber or job was given a worker"},
    {"starts_in_place", &runtime_metrics::starts_in_place, true, "of these, started without a switch"},
    {"steals", &runtime_metrics::steals, true, "successful steals"},
    {"overflows", &runtime_metrics::overflows, true, "times that a full queue passed work to the shared queue"},
    {"parks", &runtime_metrics::parks, true, "times that a worker went to sleep"},
    {"wakes", &runtime_metrics::wakes, true, "times that a worker was woken or started"},
    {"polls", &runtime_metrics::polls, true, "turns of the event loop"},
    {"events", &runtime_metrics::events, true, "events that they brought"},
    {"thread_starts_refused", &runtime_metrics::thread_starts_refused, true, "threads that the machine refused"},
    {"stacks_refused", &runtime_metrics::stacks_refused, true, "stacks that the machine refused"},
    {"accepts_refused", &runtime_metrics::accepts_refused, true, "accepts that lacked descriptors or memory"},
    {"workers_retaken", &runtime_metrics::workers_retaken, true, "times that others took the work of a stuck worker"},
    {"poller_handoffs", &runtime_metrics::poller_handoffs, true, "workers woken or started to watch the event loop"},
    {"stack_bytes_trimmed", &runtime_metrics::stack_bytes_trimmed, true,
     "bytes returned from stacks of fibers that waited for long"},
    {"lost_wakeups", &runtime_metrics::lost_wakeups, true, "lost wake-ups: always 0, or there is a defect"},
};

void print_type(std::ostream& out, const std::string& name, const char* type, const char* help) {
  out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
}

}  // namespace

std::vector<runtime_metric> runtime_metrics::list() const {
  std::vector<runtime_metric> all;
  for (const described& each : all_metrics) all.push_back({each.name, each.help, each.grows, this->*each.value});
  return all;
}

std::string to_string(const runtime_metrics& metrics) {
  std::string text;
  for (const runtime_metric& each : metrics.list())
    text += std::string(each.name) + ' ' + std::to_string(each.value) + '\n';
  return text;
}

std::uint64_t duration_histogram::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::chrono::nanoseconds duration_histogram::within(double part) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return {};
  std::uint64_t kept = 0;
  std::size_t bucket = 0;
  while (bucket + 2 < size && static_cast<double>(kept += counts[bucket]) < part * static_cast<double>(all)) ++bucket;
  return bound(bucket);
}

std::string to_string(const runtime_times& times) {
  std::string text;
  const auto write = [&](const std::string& name, const duration_histogram& of) {
    const auto line = [&](const char* what, std::uint64_t value) {
      text += name + what + ' ' + std::to_string(value) + '\n';
    };
    line("_count", of.count());
    line("_sum_ns", static_cast<std::uint64_t>(of.sum.count()));
    for (const auto& [what, part] :
         {std::pair("_p50_ns", 0.5), {"_p90_ns", 0.9}, {"_p99_ns", 0.99}, {"_p999_ns", 0.999}})
      line(what, static_cast<std::uint64_t>(of.within(part).count()));
  };
  write("queue_delay", times.queue_delay);
  write("run", times.run);
  return text;
}

namespace detail {

void write_prometheus(std::ostream& out, const runtime_report& report) {
  for (const runtime_metric& each : report.metrics.list()) {
    const std::string name = "ulexite_" + std::string(each.name) + (each.grows ? "_total" : "");
    print_type(out, name, each.grows ? "counter" : "gauge", each.help);
    out << name << ' ' << each.value << '\n';
  }
  print_type(out, "ulexite_worker_dispatches_total", "counter", "times that the worker was given to a fiber or job");
  for (const worker_report& each : report.workers)
    out << "ulexite_worker_dispatches_total{worker=\"" << each.index << "\"} " << each.dispatches << '\n';
  print_type(out, "ulexite_worker_queued", "gauge", "runnables behind what the worker runs");
  for (const worker_report& each : report.workers)
    out << "ulexite_worker_queued{worker=\"" << each.index << "\"} " << each.queued << '\n';
  if (report.fibers_unseen) return;
  print_type(out, "ulexite_fibers_waiting", "gauge", "fibers that wait, by what they wait for");
  for (std::size_t i = 1; i < wait_kinds; ++i)
    out << "ulexite_fibers_waiting{kind=\"" << name_of(static_cast<wait_kind>(i)) << "\"} " << report.waiting[i]
        << '\n';
}

namespace {

std::string seconds(std::chrono::nanoseconds time) {
  char text[32];
  const double count = std::chrono::duration<double>(time).count();
  return {text, std::to_chars(text, std::end(text), count, std::chars_format::fixed, 9).ptr};
}

void print_histogram(std::ostream& out, const std::string& name, const char* help, const duration_histogram& of) {
  print_type(out, name, "histogram", help);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < duration_histogram::size; ++i)
    out << name << "_bucket{le=\"" << seconds(duration_histogram::bound(i)) << "\"} " << (sum += of.counts[i]) << '\n';
  sum += of.counts.back();
  out << name << "_bucket{le=\"+Inf\"} " << sum << '\n'
      << name << "_sum " << seconds(of.sum) << '\n'
      << name << "_count " << sum << '\n';
}

// As a label's value. Bytes that are not UTF-8 become U+FFFD, because a reader refuses all metrics for one of them.
std::string label_text(std::string_view text) {
  std::string value = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t size = json::size_of_character(text);
    if (size == 0)
      value += "\ufffd";
    else if (c == '\n')
      value += "\\n";
    else
      (value += c == '"' || c == '\\' ? "\\" : "") += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return value + '"';
}

// The innermost frame that is not the library's own.
std::string place_of_wait(const fiber_group& group) {
  std::string frame;
  for (const void* const each : group.frames) {
    frame = describe_frame(each);
    const std::size_t own = frame.find("ulexite::");  // there may be a type in front
    if (own == std::string::npos || own > frame.find('(')) break;
  }
  return frame.substr(0, 200);
}

}  // namespace

void write_prometheus(std::ostream& out, const runtime_times& times) {
  if (times.run.count() == 0) return;
  print_histogram(out, "ulexite_queue_delay_seconds", "how long fibers waited for a worker", times.queue_delay);
  print_histogram(out, "ulexite_run_seconds", "how long fibers and jobs ran until they let go of their worker",
                  times.run);
}

void write_long_waits(std::ostream& out, const runtime_report& report, std::size_t max_places) {
  std::map<std::string, std::size_t> by_place;
  for (const fiber_group& group : report.groups)
    if (group.long_waits != 0)
      by_place["spawned_at=" + label_text(describe(group.oldest.where)) + ",waits=\"" + name_of(group.oldest.kind) +
               "\",waits_in=" + label_text(place_of_wait(group))] += group.long_waits;
  std::vector<std::pair<std::size_t, std::string>> places;
  for (auto& [place, count] : by_place) places.emplace_back(count, place);
  std::ranges::sort(places, std::greater());
  print_type(out, "ulexite_fibers_waiting_long", "gauge", "fibers that have waited for long, by place");
  std::size_t others = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i >= max_places) {
      others += places[i].first;
    } else {
      out << "ulexite_fibers_waiting_long{" << places[i].second << "} " << places[i].first << '\n';
    }
  }
  if (others != 0)
    out << "ulexite_fibers_waiting_long{spawned_at=\"other\",waits=\"other\",waits_in=\"other\"} " << others << '\n';
}

}  // namespace detail
}  // namespace ulexite
