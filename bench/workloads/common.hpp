#pragma once

// Shared by the workloads, and their list; bench.cpp has the table of their names. Each runs on the runtime's main
// fiber, prints its metrics, and throws if a result is wrong.

#include <ulexite.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace bench {

namespace ux = ulexite;

// spawn.cpp
void spawn_join(int n);
void spawn_waves(int n);
void spawn_wait(int n);
void spawn_batch(int n);
void jobs(int n);
void when_all10(int n);
// switch.cpp
void yields(int fibers, int n);
// channels.cpp
void pingpong(int n);
void pairs8(int n);
void pipe(int producers, int consumers, int n);
void select4(int n);
void skynet(int n);
// locks.cpp
void locks(int fibers, int n);
void convoy(int n);
// parked.cpp
void parked(int n);
// coroutines.cpp
void co_pingpong(bool with_fiber, int n);
void co_spawn_wait(int n);
void co_parked(bool in_select, int n);
// time.cpp
void timers(int n);
void sleep1ms(int n);
void wake(int n);
// mix.cpp
void mix(const std::string& load, int n);
// forkjoin.cpp
void fib(int n);
void skynet_fj(int n);
void nqueens(int n);
void matmul(int n);

inline std::int64_t now_ns() { return ux::steady_clock::now().time_since_epoch().count(); }

// Computes for so long, on the clock.
inline void compute(std::int64_t ns) {
  for (const std::int64_t end = now_ns() + ns; now_ns() < end;) {
  }
}

void put(const std::string& metric, double value);
void put_percentiles(const std::string& name, std::vector<std::int64_t>& samples);  // samples in nanoseconds
void require(bool right, const char* what);
double resident_bytes();  // of this process
// Of skynet, whose nodes have ten children each: another number would recurse for ever.
void require_power_of_ten(int n);

// Measures from its construction; `per` prints nanoseconds per item.
class stopwatch {
 public:
  [[nodiscard]] double elapsed() const { return static_cast<double>(now_ns() - start_); }
  void per(const char* metric, int n) const { put(metric, elapsed() / n); }
  void total() const { put("total_ms", elapsed() / 1e6); }

 private:
  std::int64_t start_ = now_ns();
};

inline bool with_float_work = false;  // WORKLOAD+fp was asked for; set before the runtime starts

// One inexact operation on doubles if asked for, in each operation of a workload. It leaves sticky flags in the
// floating-point status: inexact in an odd role, overflow too in an even one. So the status of fibers of different
// roles may differ, which a switch that saves and loads it pays for.
inline void float_work(int role) {
  if (!with_float_work) [[likely]]
    return;
  volatile double value = role % 2 == 0 ? std::numeric_limits<double>::max() : 1;
  value = value / 0.3;
}

// Starts `fibers` fibers that call body(their number), and waits for all.
template <class F>
void team(int fibers, F body) {
  ux::task_group group;
  for (int i = 0; i < fibers; ++i) group.spawn([body, i] { body(i); });
  group.wait();
}

}  // namespace bench
