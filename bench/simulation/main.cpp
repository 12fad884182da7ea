// Finds where stealing and waking stop scaling. simulation [--WORKLOAD-OPTION N]... [--COST NS]... Prints a table, or
// lines for a program with --csv 1. See docs/scaling.md.

#include "workloads.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace simulation;

// ---- runs and their results ----

struct settings {
  costs cost;
  std::uint64_t seed = 1;
  std::vector<std::size_t> workers{1, 2, 4, 8, 16, 64, 256};
  ns time = 10'000'000;  // of work for each worker
  int most = 1'000'000;  // operations of one run
  std::string only;
  bool csv = false;
};

struct outcome {
  std::string workload;
  std::size_t workers;
  double operations, rate, efficiency, all_running_us;  // operations; per us
  double steals, probes, wakes;                         // per operation
  runtime::shares busy;
  bool right;
};

outcome measure(const std::string& name, const runtime& ran, double operations, bool right) {
  const auto& c = ran.counted;
  const double time = static_cast<double>(ran.finished - ran.began);
  return {name,
          ran.size(),
          operations,
          operations / time * 1000,
          static_cast<double>(c.work) / (static_cast<double>(ran.size()) * time),
          ran.all_ran > 0 ? static_cast<double>(ran.all_ran - ran.began) / 1000 : 0,
          static_cast<double>(c.steals) / operations,
          static_cast<double>(c.probes) / operations,
          static_cast<double>(c.wakes) / operations,
          ran.utilisation(),
          right};
}

int operations(const settings& s, std::size_t workers, ns length) {
  return static_cast<int>(std::min<ns>(s.most, std::max<ns>(1, s.time * static_cast<ns>(workers) / length)));
}

outcome run_burst(const settings& s, std::size_t workers, ns length) {
  const int fibers = operations(s, workers, length);
  burst load(fibers, length);
  runtime on(workers, s.cost, load, s.seed);
  on.run();
  char name[32];
  std::snprintf(name, sizeof name, "burst %g us", static_cast<double>(length) / 1000);
  return measure(name, on, fibers, load.right());
}

outcome run_fork_join(const settings& s, std::size_t workers) {
  const auto leaves = static_cast<int>(std::bit_floor(static_cast<unsigned>(operations(s, workers, 1000))));
  fork_join load(leaves, 1000);
  runtime on(workers, s.cost, load, s.seed);
  on.run();
  return measure("fork-join, leaves of 1 us", on, leaves, load.right());
}

outcome run_ping_pong(const settings& s, std::size_t workers) {
  const auto pairs = static_cast<int>(workers);
  ping_pong load(pairs, std::min(s.most / 10, std::max(50'000, 700 * pairs)));
  runtime on(workers, s.cost, load, s.seed);
  on.run();
  const double half = load.total() / 2.0, steady = static_cast<double>(load.steady);
  outcome result = measure("ping-pong", on, load.total(), load.right());
  result.rate = half / steady * 1000;
  result.efficiency = result.rate * static_cast<double>(s.cost.switching) / 1000 / static_cast<double>(workers);
  result.steals = static_cast<double>(on.counted.steals - load.steals_before) / half;
  result.wakes = static_cast<double>(on.counted.wakes - load.wakes_before) / half;
  return result;
}

outcome run_outside(const settings& s, std::size_t workers) {
  const ns length = 10'000, interval = std::max<ns>(2 * length / static_cast<ns>(workers), 1);  // workers half busy
  const int fibers = operations(s, workers, length);
  outside load(fibers, length, interval);
  runtime on(workers, s.cost, load, s.seed);
  on.run();
  return measure("outside thread, 10 us, half load", on, fibers, load.right());
}

outcome run_connections(const settings& s, std::size_t workers) {
  const ns length = 10'000;
  const int requests = std::max(operations(s, workers, length), 40'000);
  connections load(10'000, requests, length, 100'000);
  runtime on(workers, s.cost, load, s.seed);
  on.run();
  return measure("10,000 connections, 10 us", on, requests, load.right());
}

const char* busiest(const runtime::shares& b) {
  const std::pair<double, const char*> all[] = {
      {b.shared_queue, "shared queue"}, {b.parker, "parker"}, {b.idle_word, "idle word"}, {b.fences, "fences"},
      {b.event_loop, "event loop"},     {b.ring, "one ring"}, {b.source, "source"}};
  return std::max_element(std::begin(all), std::end(all))->second;
}

void print(const settings& s, const outcome& o, double alone) {
  const auto percent = [](double share) { return 100 * share; };
  std::printf(s.csv ? "%s;%zu;%.0f;%.4f;%.4f;%.2f;%.1f;%.5f;%.4f;%.5f;%.1f;%.1f;%.1f;%.1f;%.1f;%.1f;%.1f;%s;%d\n"
                    : "%-33s %4zu %8.0f ops %8.3f/us  eff %5.3f  x%-7.2f all at %7.1f us  per op: steals %.4f probes "
                      "%.3f wakes %.5f  busy%%: queue %.1f parker %.1f idle %.1f fences %.1f loop %.1f ring %.1f "
                      "source %.1f  %s%.0d\n",
              o.workload.c_str(), o.workers, o.operations, o.rate, o.efficiency, o.rate / alone, o.all_running_us,
              o.steals, o.probes, o.wakes, percent(o.busy.shared_queue), percent(o.busy.parker),
              percent(o.busy.idle_word), percent(o.busy.fences), percent(o.busy.event_loop), percent(o.busy.ring),
              percent(o.busy.source), busiest(o.busy), s.csv ? int{o.right} : 0);
}

// ---- arguments ----

std::map<std::string, ns*> cost_options(costs& c) {
  return {{"line", &c.line},
          {"locked", &c.locked},
          {"probe", &c.probe},
          {"probe-same", &c.probe_same},
          {"transfer", &c.transfer},
          {"steal", &c.steal},
          {"wake-cost", &c.wake_cost},
          {"wake-latency", &c.wake_latency},
          {"poll", &c.poll},
          {"event", &c.event},
          {"pause", &c.pause},
          {"spin-pause", &c.spin_pause},
          {"spin-yield", &c.spin_yield},
          {"queued", &c.queued},
          {"dispatch", &c.dispatch},
          {"spawn", &c.spawn},
          {"fork", &c.fork},
          {"fence", &c.fence},
          {"fence-each", &c.fence_each},
          {"interrupt", &c.interrupt},
          {"switching", &c.switching},
          {"search-time", &c.search_time},
          {"mutex-spin", &c.mutex_spin}};
}

std::vector<std::size_t> numbers(const char* list) {
  std::vector<std::size_t> result;
  for (char* at = const_cast<char*>(list); *at; at += *at == ',') result.push_back(std::strtoul(at, &at, 10));
  return result;
}

bool parse(int argc, char** argv, settings& s) {
  auto costs_by_name = cost_options(s.cost);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = argv[i + 1];
    if (!name.starts_with("--")) return false;
    const std::string option = name.substr(2);
    if (const auto found = costs_by_name.find(option); found != costs_by_name.end())
      *found->second = std::atoll(value);
    else if (option == "seed")
      s.seed = std::strtoull(value, nullptr, 10);
    else if (option == "workers")
      s.workers = numbers(value);
    else if (option == "time")
      s.time = std::atoll(value);
    else if (option == "most")
      s.most = std::atoi(value);
    else if (option == "only")
      s.only = value;
    else if (option == "csv")
      s.csv = value[0] == '1';
    else
      return false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  if (!parse(argc, argv, s)) {
    std::fprintf(stderr,
                 "usage: %s [--workers 1,2,4] [--only WORKLOAD] [--seed N] [--time NS] [--most N] [--csv 1] "
                 "[--COST NS]...\ncosts:",
                 argv[0]);
    for (const auto& [name, value] : cost_options(s.cost)) std::fprintf(stderr, " --%s %ld", name.c_str(), *value);
    std::fprintf(stderr, "\n");
    return 2;
  }
  using run = std::function<outcome(const settings&, std::size_t)>;
  std::vector<std::pair<std::string, run>> all;
  for (const ns length : {100, 1'000, 10'000, 100'000})
    all.emplace_back("burst", [length](const settings& given, std::size_t n) { return run_burst(given, n, length); });
  all.emplace_back("fork-join", run_fork_join);
  all.emplace_back("ping-pong", run_ping_pong);
  all.emplace_back("outside", run_outside);
  all.emplace_back("connections", run_connections);
  if (s.csv)
    std::puts(
        "workload;workers;operations;rate;efficiency;relative;all_running_us;steals;probes;wakes;"
        "shared_queue;parker;idle_word;fences;event_loop;ring;source;busiest;right");
  bool right = true;
  for (const auto& [name, measured] : all) {
    if (!s.only.empty() && s.only != name) continue;
    const double alone = measured(s, 1).rate;
    for (const std::size_t n : s.workers) {
      const outcome o = measured(s, n);
      right = right && o.right;
      print(s, o, alone);
      std::fflush(stdout);
    }
  }
  return right ? 0 : 1;
}
