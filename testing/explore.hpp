#pragma once

// Runs a function many times, each time with another schedule of its fibers, until a run fails. No real time passes.
//
//   TEST(Cache, KeepsTheLastOfTwo) {
//     ulexite::testing::explore([] {
//       cache c;
//       ulexite::wait_group all;
//       all.spawn([&] { c.put("a", 1); });
//       all.spawn([&] { c.put("a", 2); });
//       all.wait();
//       ulexite::testing::expect(c.size() == 1, "one entry");
//     });
//   }
//
// docs/testing.md explains it. Link ulexite::testing.

#include <ulexite/runtime/options.hpp>
#include <ulexite/testing/network.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace ulexite::testing {

// How the runs of an exploration are made, and when one has failed.
struct explore_options {
  // The number of runs at most. They end with the first that fails.
  std::size_t schedules = 10'000;
  // How the schedules are chosen:
  //   mixed              random, pct:2 and pct:3 in turn
  //   random             each runnable fiber is as likely as the others to go on
  //   pct:DEPTH          priorities, which change at DEPTH - 1 places: "A Randomized Scheduler with Probabilistic
  //                      Guarantees of Finding Bugs" (Burckhardt et al., 2010)
  //   round_robin        after every operation the next fiber, then after every second operation, and so on
  //   exhaustive:N       all schedules with N preemptions at most: "Iterative Context Bounding" (Musuvathi and Qadeer,
  //                      2007). A preemption: a fiber that could go on does not
  //   cooperative        one schedule without preemptions
  std::string strategy = "mixed";
  // Of the choices. The same seed gives the same runs.
  std::uint64_t seed = 1;
  // What a failed run has printed: only that run. The environment's ULEXITE_SCHEDULE is taken if this is empty.
  std::string replay{};
  // How long the simulated machine may let a runnable fiber wait. 0: a timer fires only when no fiber can run. With 1 ms,
  // timers of the next millisecond may also fire while fibers can run, so that time limits race with what they limit.
  std::chrono::nanoseconds slowness{0};
  // Is it a failure if fibers still live when the function has returned, and only time could end them? Or if sockets
  // are still open then?
  bool leaks_fail = true;
  // Steps of one run, at which it counts as endless. A step is an operation or a switch.
  std::size_t most_steps = 200'000;
  // No new run begins after that much real time. 0: no limit.
  std::chrono::nanoseconds real_time{0};
  // The failing schedule is repeated with fewer switches, as long as it still fails: up to 2,000 times.
  bool shorten = true;
  // Of the simulated network: sockets exist in the run only.
  network_options network{};
  // Of the runtime that the function runs in. It has one worker, whatever they say.
  runtime_options runtime{};
};

// A run that failed.
struct failed_schedule {
  std::string reason;        // the first line: what failed
  std::string report;        // with the fibers, what each waits for, and how to repeat the run
  std::string replay;        // for explore_options::replay
  std::size_t number = 0;    // of the run, from 1
  std::size_t switches = 0;  // choices in replay
  std::uint64_t digest = 0;  // of everything that was chosen in the run as it was found
};

// What explore has done.
struct exploration {
  std::size_t schedules = 0;                 // runs
  bool exhausted = false;                    // the strategy has no other schedule
  std::uint64_t steps = 0;                   // of all runs
  std::uint64_t longest = 0;                 // choices in the longest run
  std::uint64_t digest = 0;                  // of everything that was chosen in the last run
  std::chrono::nanoseconds time{0};          // real
  std::optional<failed_schedule> failure{};  // of find_failure
};

// Thrown by explore. what() is the report.
class schedule_failed : public std::runtime_error {
 public:
  // By explore.
  explicit schedule_failed(failed_schedule failure)
      : std::runtime_error(failure.report), failure_(std::move(failure)) {}
  // What has failed, and how to repeat it.
  [[nodiscard]] const failed_schedule& failure() const noexcept { return failure_; }

 private:
  failed_schedule failure_;
};

// Calls `body` as the main fiber of one run after the other, all on the calling thread. A run fails
//   - by fail() or an expect() that does not hold,
//   - by an exception that leaves `body`, or a fiber whose result nobody takes,
//   - by a deadlock: no fiber can run, and no timer is set,
//   - by fibers that still live, or sockets that are still open, at the end (explore_options::leaks_fail),
//   - by more than most_steps steps.
// Throws schedule_failed for the first. Throws std::invalid_argument for a strategy or a replay that it does not know,
// usage_error if the caller is a fiber.
//
// `body` should create all that it uses, because the next run begins in the same process. Only operations of this library
// are seen; atomic variables, locks of the standard library and other threads are not. blocking() and block_in_place()
// call their function on the spot. Sockets are those of a simulated network, which lives as long as the run. A wait for
// another file descriptor fails with ENOTSUP.
exploration explore(const explore_options& options, const std::function<void()>& body);
inline exploration explore(const std::function<void()>& body) { return explore({}, body); }

// The same, but it returns the failure.
exploration find_failure(const explore_options& options, const std::function<void()>& body);

// Calls `body` as the main fiber of one run without preemptions: for tests of time limits, which then take no time.
// Throws as explore does.
void run_with_virtual_time(const std::function<void()>& body);

// The rest is for the fibers of such a run. Elsewhere expect and fail throw usage_error, the others have no effect.

// The run fails, for that reason. It goes on, so that it ends as it would; the first reason counts.
void fail(const std::string& reason);
// fail, unless that holds.
inline void expect(bool holds, const char* what) {
  if (!holds) fail(std::string("expected: ") + what);
}
// A number below `bound`, as the run's strategy chooses it: for what a test leaves open. 0 outside a run.
std::uint32_t choose(std::uint32_t bound);
// Others may go first here: to be called between accesses to what is not the library's, such as an atomic variable.
void point();
// Makes `value` a part of the run's digest.
void note(std::uint64_t value);

}  // namespace ulexite::testing
