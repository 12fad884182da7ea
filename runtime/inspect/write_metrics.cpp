#include <ulexite/runtime/inspect/report.hpp>

#include <ostream>

namespace ulexite {
namespace {

struct metric {
  const char* name;
  std::uint64_t runtime_metrics::* value;
  const char* type;  // the type of Prometheus
  const char* help;
};

constexpr metric all_metrics[] = {
    {"workers", &runtime_metrics::workers, "gauge", "worker threads that were started"},
    {"workers_sleeping", &runtime_metrics::workers_sleeping, "gauge", "workers that sleep"},
    {"workers_searching", &runtime_metrics::workers_searching, "gauge", "workers that look for work"},
    {"fibers_live", &runtime_metrics::fibers_live, "gauge", "fibers that were spawned and have not ended"},
    {"queued_outside", &runtime_metrics::queued_outside, "gauge", "runnables in the shared queue"},
    {"blocking_threads", &runtime_metrics::blocking_threads, "gauge", "threads for blocking calls, idle ones too"},
    {"blocking_queued", &runtime_metrics::blocking_queued, "gauge", "blocking calls that wait for a thread"},
    {"fibers_spawned", &runtime_metrics::fibers_spawned, "counter", "fibers spawned"},
    {"fibers_ended", &runtime_metrics::fibers_ended, "counter", "fibers ended"},
    {"dispatches", &runtime_metrics::dispatches, "counter", "times that a fiber or job was given a worker"},
    {"starts_in_place", &runtime_metrics::starts_in_place, "counter", "of these, started without a switch"},
    {"steals", &runtime_metrics::steals, "counter", "successful steals"},
    {"overflows", &runtime_metrics::overflows, "counter", "times that half a full queue was moved"},
    {"parks", &runtime_metrics::parks, "counter", "times that a worker went to sleep"},
    {"wakes", &runtime_metrics::wakes, "counter", "times that a worker was woken or started"},
    {"polls", &runtime_metrics::polls, "counter", "turns of the event loop"},
    {"events", &runtime_metrics::events, "counter", "events that they brought"},
    {"thread_starts_refused", &runtime_metrics::thread_starts_refused, "counter", "threads that the machine refused"},
    {"stacks_refused", &runtime_metrics::stacks_refused, "counter", "stacks that the machine refused"},
    {"hogs_relieved", &runtime_metrics::hogs_relieved, "counter",
     "fibers moved away from a worker that did not switch"},
    {"polls_rescued", &runtime_metrics::polls_rescued, "counter", "workers woken or started to watch the event loop"},
    {"rescued_wakeups", &runtime_metrics::rescued_wakeups, "counter", "lost wake-ups: always 0, or there is a defect"},
};

void print_type(std::ostream& out, const std::string& name, const char* type, const char* help) {
  out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
}

}  // namespace

std::string to_string(const runtime_metrics& metrics) {
  std::string text;
  for (const metric& each : all_metrics)
    text += std::string(each.name) + ' ' + std::to_string(metrics.*each.value) + '\n';
  return text;
}

namespace detail {

void write_prometheus(std::ostream& out, const runtime_report& report) {
  for (const metric& each : all_metrics) {
    const std::string name = "ulexite_" + std::string(each.name) + (each.type[0] == 'c' ? "_total" : "");
    print_type(out, name, each.type, each.help);
    out << name << ' ' << report.metrics.*each.value << '\n';
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

}  // namespace detail
}  // namespace ulexite
