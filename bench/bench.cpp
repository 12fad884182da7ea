// The workloads that other runtimes are measured with too: bench WORKLOAD THREADS N
// Prints "metric value" lines; exits with 3 for a workload that it does not have.

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
namespace ux = ulexite;

std::int64_t now_ns() { return ux::clock::now().time_since_epoch().count(); }

void put(const std::string& metric, double value) { std::printf("%s %.2f\n", metric.c_str(), value); }

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double page_table_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmPTE:")) return std::stod(line.substr(6)) * 1024;
  return 0;
}

void put_percentiles(const std::string& name, std::vector<std::int64_t>& samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double quantile) {
    const auto i = static_cast<std::size_t>(quantile * static_cast<double>(samples.size()));
    return static_cast<double>(samples[std::min(i, samples.size() - 1)]) / 1000;
  };
  put(name + "_p50_us", at(.50));
  put(name + "_p99_us", at(.99));
  put(name + "_max_us", at(1));
}

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

// Measures from its construction; `per` prints nanoseconds per item.
class stopwatch {
 public:
  [[nodiscard]] double elapsed() const { return static_cast<double>(now_ns() - start_); }
  void per(const char* metric, int n) const { put(metric, elapsed() / n); }

 private:
  std::int64_t start_ = now_ns();
};

void spawn_and_wait(int n) {
  ux::wait_group group;
  for (int i = 0; i < n; ++i) group.spawn([] {});
  group.wait();
}

template <class F>
void team(int fibers, F body) {
  ux::wait_group group;
  for (int i = 0; i < fibers; ++i) group.spawn(body);
  group.wait();
}

void spawn_join(int n) {
  const stopwatch watch;
  spawn_and_wait(n);
  watch.per("ns_per_fiber", n);
}

void spawn_waves(int n) {
  const stopwatch watch;
  for (int i = 0; i < n / 1000; ++i) spawn_and_wait(1000);
  watch.per("ns_per_fiber", n);
}

void spawn_batch(int n) {
  const stopwatch watch;
  for (int i = 0; i < n / 1000; ++i) {
    ux::wait_group group;
    group.spawn_batch(1000, [](std::size_t) {});
    group.wait();
  }
  watch.per("ns_per_fiber", n);
}

void spawn_wait(int n) {
  const stopwatch watch;
  for (int i = 0; i < n; ++i) ux::spawn([] {}).join();
  watch.per("ns_per_fiber", n);
}

void yields(int fibers, int n) {
  const stopwatch watch;
  team(fibers, [=] {
    for (int i = 0; i < n / fibers; ++i) ux::this_fiber::yield();
  });
  watch.per("ns_per_yield", n);
}

void pingpong(int n) {
  const stopwatch watch;
  ux::channel<int> there, back;
  auto echo = ux::spawn([&] {
    for (int value : there) back.send(value);
  });
  for (int i = 0; i < n; ++i) {
    there.send(i);
    require(back.receive() == i, "pingpong: a wrong answer");
  }
  there.close();
  echo.join();
  watch.per("ns_per_roundtrip", n);
}

void pipe(int producers, int consumers, int n) {
  const stopwatch watch;
  ux::channel<int> items(128);
  ux::mutex total_mutex;
  long total = 0;
  ux::wait_group consuming;
  for (int c = 0; c < consumers; ++c)
    consuming.spawn([&] {
      long sum = 0;
      for (int value : items) sum += value;
      const std::lock_guard lock(total_mutex);
      total += sum;
    });
  team(producers, [&] {
    for (int i = 0; i < n / producers; ++i) items.send(1);
  });
  items.close();
  consuming.wait();
  require(total == n / producers * producers, "pipe: items lost");
  watch.per("ns_per_item", n);
}

void select4(int n) {
  const stopwatch watch;
  ux::channel<int> channels[4];
  auto& [a, b, c, d] = channels;
  ux::wait_group producing;
  for (auto& channel : channels)
    producing.spawn([&channel, n] {
      for (int i = 0; i < n / 4; ++i) channel.send(i);
    });
  long sum = 0;
  const auto take = [&](std::optional<int> value) { sum += *value; };
  for (int i = 0; i < n / 4 * 4; ++i)
    ux::select(ux::on_receive(a, take), ux::on_receive(b, take), ux::on_receive(c, take), ux::on_receive(d, take));
  producing.wait();
  require(sum == 4L * (n / 4) * (n / 4 - 1) / 2, "select4: items lost");
  watch.per("ns_per_op", n);
}

void when_all10(int n) {
  const stopwatch watch;
  const auto one = [] { return 1; };
  int sum = 0;
  for (int i = 0; i < n; ++i)
    std::apply([&](auto... values) { sum += (values + ...); },
               ux::when_all(one, one, one, one, one, one, one, one, one, one));
  require(sum == 10 * n, "when_all10: a wrong sum");
  watch.per("ns_per_op", n);
}

void locks(int fibers, int n) {
  const stopwatch watch;
  ux::mutex mutex;
  long counter = 0;
  team(fibers, [&] {
    for (int i = 0; i < n / fibers; ++i) {
      const std::lock_guard lock(mutex);
      ++counter;
    }
  });
  require(counter == n / fibers * fibers, "mutex: increments lost");
  watch.per("ns_per_lock", n);
}

void skynet(ux::channel<long>& out, long number, long size) {
  if (size == 1) return out.send(number);
  ux::channel<long> sums;
  for (long i = 0; i < 10; ++i)
    ux::spawn([&sums, number, size, i] { skynet(sums, number + i * (size / 10), size / 10); }).detach();
  long sum = 0;
  for (int i = 0; i < 10; ++i) sum += *sums.receive();
  out.send(sum);
}

void skynet(int n) {
  const stopwatch watch;
  ux::channel<long> result;
  ux::spawn([&] { skynet(result, 0, n); }).detach();
  require(*result.receive() == static_cast<long>(n) * (n - 1) / 2, "skynet: a wrong sum");
  put("total_ms", watch.elapsed() / 1e6);
}

void parked(int n) {
  ux::channel<int> gate;
  ux::wait_group up(static_cast<std::size_t>(n)), down(static_cast<std::size_t>(n));
  const double resident = resident_bytes(), tables = page_table_bytes();
  const stopwatch creation;
  for (int i = 0; i < n; ++i)
    ux::spawn([&] {
      up.done();
      gate.receive();
      down.done();
    }).detach();
  up.wait();
  creation.per("create_ns", n);
  ux::this_fiber::sleep_for(10ms);
  put("rss_bytes_per_fiber", (resident_bytes() - resident) / n);
  put("page_table_bytes_per_fiber", (page_table_bytes() - tables) / n);
  const stopwatch release;
  gate.close();
  down.wait();
  release.per("release_ns", n);
}

void timers(int n) {
  std::vector<std::int64_t> late(static_cast<std::size_t>(n));
  ux::wait_group group;
  std::uint64_t state = 42;  // Knuth's MMIX generator, as in the other programs
  const stopwatch watch;
  for (auto& lateness : late) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto time = std::chrono::microseconds((state >> 33) % 1000000);
    group.spawn([&lateness, time] {
      const std::int64_t start = now_ns();
      ux::this_fiber::sleep_for(time);
      lateness = now_ns() - start - std::chrono::nanoseconds(time).count();
    });
  }
  group.wait();
  put("wall_ms", watch.elapsed() / 1e6);
  put_percentiles("late", late);
}

void sleep1ms(int n) {
  std::vector<std::int64_t> over;
  for (int i = 0; i < n; ++i) {
    const std::int64_t start = now_ns();
    ux::this_fiber::sleep_for(1ms);
    over.push_back(now_ns() - start - 1'000'000);
  }
  put_percentiles("over", over);
}

void wake(int n) {
  ux::channel<std::int64_t> sent(1);
  std::thread outside([&] {
    for (int i = 0; i < n; ++i) {
      std::this_thread::sleep_for(1ms);
      sent.send(now_ns());
    }
    sent.close();
  });
  std::vector<std::int64_t> latencies;
  for (std::int64_t time : sent) latencies.push_back(now_ns() - time);
  outside.join();
  put_percentiles("wake", latencies);
}

const std::map<std::string, std::function<void(int)>> workloads{
    {"spawn_join", spawn_join},
    {"spawn_waves", spawn_waves},
    {"spawn_batch", spawn_batch},
    {"spawn_wait", spawn_wait},
    {"yield2", [](int n) { yields(2, n); }},
    {"yield1k", [](int n) { yields(1000, n); }},
    {"pingpong", pingpong},
    {"pipe128", [](int n) { pipe(1, 1, n); }},
    {"mpmc", [](int n) { pipe(4, 4, n); }},
    {"select4", select4},
    {"when_all10", when_all10},
    {"mutex1", [](int n) { locks(1, n); }},
    {"mutex8", [](int n) { locks(8, n); }},
    {"skynet", [](int n) { skynet(n); }},
    {"parked", parked},
    {"timers", timers},
    {"sleep1ms", sleep1ms},
    {"wake", wake},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s WORKLOAD THREADS N\n", argv[0]);
    return 2;
  }
  const auto workload = workloads.find(argv[1]);
  if (workload == workloads.end()) return 3;
  try {
    ux::runtime runtime({.threads = std::stoul(argv[2]), .stack_size = 64 * 1024});
    runtime.run(workload->second, std::stoi(argv[3]));
    const auto metrics = runtime.metrics();
    if (std::getenv("ULEXITE_BENCH_METRICS"))
      std::fprintf(stderr, "dispatches %lu in place %lu steals %lu parks %lu wakes %lu polls %lu overflows %lu\n",
                   metrics.dispatches, metrics.starts_in_place, metrics.steals, metrics.parks, metrics.wakes,
                   metrics.polls, metrics.overflows);
    require(metrics.rescued_wakeups == 0, "a wake-up was lost");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
