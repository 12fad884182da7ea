#include <ulexite/base/panic.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/runtime/inspect/json.hpp>
#include <ulexite/runtime/inspect/plain_stream.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/trace.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

constinit std::atomic<bool> taken{false};  // whether a runtime has the file of the environment; the first one takes it

struct place_in_time {
  trace_event event;
  std::size_t worker;
  std::size_t order;  // among events of the same time
};

// Converts the events of all workers, ordered by time, to Chrome's trace format (Trace Event Format, 2016), which
// Perfetto also reads.
class trace_writer {
 public:
  trace_writer(std::ostream& out, std::uint64_t first_ticks, std::int64_t first_time, std::size_t workers)
      : events_(out, '[', ']'), first_ticks_(first_ticks), runs_(workers) {
    const auto ticks = static_cast<double>(clock_ticks() - first_ticks);
    const auto time = static_cast<double>(now_ns() - first_time);
    microseconds_per_tick_ = ticks > 0 ? time / ticks / 1000 : 0;
    for (std::size_t i = 0; i < workers; ++i) {
      json named(events_.next(), '{', '}');
      begin(named, "M", 0, i);
      named.string("name", "thread_name");
      json arguments(named.key("args"), '{', '}');
      arguments.string("name", "worker " + std::to_string(i));
    }
  }

  // Called first, for all workers, so that a name is known from the fiber's first run on.
  void learn(const std::vector<trace_event>& of_worker) {
    add_spawners(of_worker, spawners_);
    std::uint64_t fiber = 0;
    for (const trace_event& each : of_worker) {
      if (each.kind == trace_kind::dispatch) fiber = each.value;
      if (fiber == 0) continue;  // a job, or the fiber's dispatch is not kept
      if (each.kind == trace_kind::place)
        places_[fiber] = spawn_place::of_bits(each.value | std::uintptr_t{each.detail} << 48);
      if (each.kind != trace_kind::name) continue;
      char part[7] = {};
      std::memcpy(part, &each.value, 6);
      std::string& name = names_[fiber];
      if (name.size() == 6U * each.detail) name += part;
    }
  }

  void add(const trace_event& event, std::size_t worker) {
    run& now = runs_[worker];
    switch (event.kind) {
      case trace_kind::dispatch:
        end_run(now, event, worker);
        now = {true, event.value, event.ticks};
        if (const auto wake = wakes_.find(event.value); wake != wakes_.end()) {
          arrow("f", wake->second, event, worker);
          wakes_.erase(wake);
        }
        break;
      case trace_kind::left: end_run(now, event, worker); break;
      case trace_kind::wake:
        if (!now.under_way) break;
        wakes_[event.value] = ++arrows_;
        arrow("s", arrows_, event, worker);
        break;
      case trace_kind::park: parked_[worker] = event.ticks; break;
      case trace_kind::unpark: end_sleep(event.ticks, worker); break;
      case trace_kind::steal: instant("steal", event, worker); break;
      case trace_kind::queue: counter(event, worker); break;
      case trace_kind::span_begin: span("b", now.fiber, event, worker); break;
      case trace_kind::span_end: span("e", now.fiber, event, worker); break;
      case trace_kind::spawn:
      case trace_kind::place:
      case trace_kind::name: break;
    }
  }

  // Called last. What still runs or sleeps then lasts until `now`, the end of the recording.
  void finish(std::uint64_t now) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].since < now) end_run(runs_[i], {.ticks = now, .value = 0, .kind = trace_kind::left, .detail = 0}, i);
      end_sleep(now, i);
    }
  }

 private:
  struct run {
    bool under_way = false;
    std::uint64_t fiber = 0;
    std::uint64_t since = 0;
  };

  [[nodiscard]] double time_of(std::uint64_t ticks) const {
    return static_cast<double>(static_cast<std::int64_t>(ticks - first_ticks_)) * microseconds_per_tick_;
  }
  void begin(json& event, const char* phase, std::uint64_t ticks, std::size_t worker) const {
    event.string("ph", phase);
    event.number("pid", 1);
    event.number("tid", worker);
    if (ticks != 0) event.key("ts") << time_of(ticks);
  }
  void begin_slice(json& event, std::uint64_t since, std::uint64_t until, std::size_t worker,
                   std::string_view name) const {
    begin(event, "X", since, worker);
    event.key("dur") << time_of(until) - time_of(since);
    event.string("name", name);
  }
  [[nodiscard]] std::string name_of_fiber(std::uint64_t fiber) const {
    if (fiber == 0) return "job";
    const auto name = names_.find(fiber);
    return name == names_.end() ? "fiber #" + std::to_string(fiber) : name->second + " #" + std::to_string(fiber);
  }
  static std::string describe_departure(std::uint8_t how) {
    const std::uint8_t which = how & departure_note::which;
    if (which == departure_note::waits)
      return std::string("waits ") + to_string(static_cast<wait_kind>(how & ~departure_note::which));
    return which == departure_note::yields ? "yields" : which == departure_note::ended ? "ended" : "";
  }

  void end_run(run& of, const trace_event& by, std::size_t worker) {
    if (!std::exchange(of.under_way, false)) return;
    json event(events_.next(), '{', '}');
    begin_slice(event, of.since, by.ticks, worker, name_of_fiber(of.fiber));
    json arguments(event.key("args"), '{', '}');
    arguments.number("fiber", of.fiber);
    if (const std::string then = describe_departure(by.detail); !then.empty()) arguments.string("then", then);
    if (const auto spawner = spawners_.find(of.fiber); spawner != spawners_.end())
      arguments.string("spawned by", name_of_fiber(spawner->second));
    if (const auto place = places_.find(of.fiber); place != places_.end())
      arguments.string("spawned at", describe(place->second));
  }
  void end_sleep(std::uint64_t now, std::size_t worker) {
    const auto since = parked_.find(worker);
    if (since == parked_.end()) return;
    json sleep(events_.next(), '{', '}');
    begin_slice(sleep, since->second, std::max(now, since->second), worker, "sleeps");
    parked_.erase(since);
  }
  void arrow(const char* phase, std::uint64_t number, const trace_event& at, std::size_t worker) {
    json event(events_.next(), '{', '}');
    begin(event, phase, at.ticks, worker);
    event.string("name", "wakes");
    event.string("cat", "wake");
    event.number("id", number);
    if (*phase == 'f') event.string("bp", "e");
  }
  void instant(const char* name, const trace_event& at, std::size_t worker) {
    json event(events_.next(), '{', '}');
    begin(event, "i", at.ticks, worker);
    event.string("name", name);
    event.string("s", "t");
  }
  void counter(const trace_event& at, std::size_t worker) {
    json event(events_.next(), '{', '}');
    begin(event, "C", at.ticks, worker);
    event.string("name", "queued at worker " + std::to_string(worker));
    json arguments(event.key("args"), '{', '}');
    arguments.number("runnables", at.value);
  }
  void span(const char* phase, std::uint64_t fiber, const trace_event& at, std::size_t worker) {
    json event(events_.next(), '{', '}');
    begin(event, phase, at.ticks, worker);
    event.string("name", reinterpret_cast<const char*>(at.value));
    event.string("cat", "span");
    event.number("id", fiber);
  }

  json events_;
  const std::uint64_t first_ticks_;
  double microseconds_per_tick_ = 0;
  std::vector<run> runs_;
  std::map<std::size_t, std::uint64_t> parked_;             // since when
  std::unordered_map<std::uint64_t, std::uint64_t> wakes_;  // by fiber that has not run since: the arrow's number
  std::uint64_t arrows_ = 0;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::unordered_map<std::uint64_t, spawn_place> places_;
  spawner_map spawners_;
};

}  // namespace

// Writes without the mutex, because a stream may wait.
bool write_trace(std::ostream& out, runtime_state& rt) {
  const std::size_t workers = rt.threads.most();
  std::vector<std::vector<trace_event>> recorded(workers);
  std::unique_lock lock(rt.trace.mutex);
  if (rt.trace.recorders.empty()) return false;
  for (std::size_t i = 0; i < workers; ++i) recorded[i] = recorded_events(rt, i);
  const std::uint64_t first_ticks = rt.trace.first_ticks;
  const std::int64_t first_time = rt.trace.first_time;
  const std::uint64_t last_ticks = rt.trace.on ? clock_ticks() : rt.trace.last_ticks;
  lock.unlock();

  out << std::fixed << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":";
  {
    trace_writer writer(out, first_ticks, first_time, workers);
    std::vector<place_in_time> all;
    for (std::size_t i = 0; i < workers; ++i) {
      writer.learn(recorded[i]);
      for (const trace_event& each : recorded[i]) all.push_back({each, i, all.size()});
    }
    std::ranges::sort(all, {}, [](const place_in_time& each) { return std::pair(each.event.ticks, each.order); });
    for (const place_in_time& each : all) writer.add(each.event, each.worker);
    writer.finish(last_ticks);
  }
  out << "}\n";
  return true;
}

std::unique_ptr<trace_file> trace_file::of_environment(runtime_state& rt) {
  const char* const name = std::getenv("ULEXITE_TRACE");
  if (!name || !*name || taken.exchange(true, std::memory_order_acquire)) return nullptr;  // pairs with ~trace_file
  std::ofstream out;
  {
    const standard_descriptors_taken none_free;
    const int found = ::open(name, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (found < 0) {
      out.setstate(std::ios::failbit);  // a FIFO without a reader, for which open() would wait, too
    } else {
      out.open(name);
      ::close(found);
    }
  }
  if (!out) {
    warn("ULEXITE_TRACE: %s cannot be written (%s): no trace is recorded", name, ::strerrordesc_np(errno));
    taken.store(false, std::memory_order_relaxed);  // nothing was written
    return nullptr;
  }
  std::unique_ptr<trace_file> made(new trace_file(rt, std::move(out)));
  start_trace(rt, {});
  return made;
}

trace_file::~trace_file() {
  stop_trace(runtime_);
  try {
    write_plainly(out_, [&](std::ostream& plain) { write_trace(plain, runtime_); });
    out_.close();
    if (!out_) warn("ULEXITE_TRACE: the trace is incomplete (%s)", ::strerrordesc_np(errno));
  } catch (const std::exception& refused) {
    warn("ULEXITE_TRACE: the trace is incomplete: %s", refused.what());
  }
  taken.store(false, std::memory_order_release);  // pairs with of_environment: the next runtime finds the file written
}

}  // namespace ulexite::detail
