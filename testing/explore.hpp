#pragma once

// Runs a function many times, each time with another schedule of its fibers, until a run fails. No real time passes.
//
//   TEST(Cache, KeepsTheLastOfTwo) {
//     ulexite::testing::explore([] {
//       cache c;
//       ulexite::task_group all;
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

// The settings of an exploration: how runs are made, and when a run fails.
struct explore_options {
  // The largest number of runs. The exploration ends with the first failed run.
  std::size_t schedules = 10'000;
  // How the schedules are chosen:
  //   mixed              random, pct:2 and pct:3 alternately; a third of the runs are slow (slowness)
  //   random             each runnable fiber is equally likely to continue
  //   pct:DEPTH          priorities, which change at DEPTH - 1 places: "A Randomized Scheduler with Probabilistic
  //                      Guarantees of Finding Bugs" (Burckhardt et al., 2010)
  //   round_robin        after every operation the next fiber, then after every second operation, and so on
  //   exhaustive:N       all schedules with N preemptions at most: "Iterative Context Bounding" (Musuvathi and Qadeer,
  //                      2007). A preemption: a fiber that could continue does not
  //   cooperative        one schedule without preemptions
  std::string strategy = "mixed";
  // The seed of the choices. Equal seeds make equal runs.
  std::uint64_t seed = 1;
  // What a failed run has printed behind ULEXITE_SCHEDULE=: repeats only this run. If it is empty, that variable of the
  // environment is used.
  std::string replay{};
  // The longest time that the simulated machine may let a runnable fiber wait. 0: a timer fires only when no fiber can
  // run. With 1 ms, timers of the next millisecond may also fire while fibers can run. So time limits race with the
  // operations that they limit. Unless it is set, it is 0 for all strategies but mixed. There it is 10 ms, and the
  // longest way of a message in the network, in a third of the runs.
  std::optional<std::chrono::nanoseconds> slowness{};
  // Whether a run fails if fibers still live after the function has returned, and only time could end them. Or if
  // sockets are still open then.
  bool leaks_fail = true;
  // The number of steps after which a run counts as endless. A step is an operation or a switch.
  std::size_t max_steps = 200'000;
  // The real time after which no new run begins. 0: no limit.
  std::chrono::nanoseconds real_time{0};
  // The real time without a step after which stderr shows the present calls, the fibers, and the line that repeats the
  // run. The run goes on. 0: never.
  std::chrono::milliseconds stuck_after{5'000};
  // Whether to repeat the failing schedule with fewer switches, as long as it still fails: up to 2,000 times.
  bool shorten = true;
  // The simulated network: sockets exist in the run only.
  network_options network{};
  // The options of the runtime of each run. It always has one worker. threads, max_threads and on_unhandled_exception
  // are replaced.
  runtime_options runtime{};
};

// A run that failed.
struct failed_schedule {
  std::string reason;        // the first line: what failed
  std::string report;        // with the fibers and their waits, and how to repeat the run
  std::string replay;        // for explore_options::replay
  std::size_t number = 0;    // of the run, from 1
  std::size_t switches = 0;  // choices in replay
  std::uint64_t digest = 0;  // of all choices in the run as it was found
};

// The result of an exploration.
struct exploration {
  std::size_t schedules = 0;                 // runs
  bool exhausted = false;                    // the strategy has no other schedule
  std::uint64_t steps = 0;                   // of all runs
  std::uint64_t longest = 0;                 // choices in the longest run
  std::uint64_t digest = 0;                  // of all choices in the last run
  std::chrono::nanoseconds time{0};          // real
  std::optional<failed_schedule> failure{};  // set by find_failure
};

// Thrown by explore. what() is the report.
class schedule_failed : public std::runtime_error {
 public:
  // For explore only.
  explicit schedule_failed(failed_schedule failure)
      : std::runtime_error(failure.report), failure_(std::move(failure)) {}
  // The failure, and how to repeat it.
  [[nodiscard]] const failed_schedule& failure() const noexcept { return failure_; }

 private:
  failed_schedule failure_;
};

// Calls `body` as the main fiber of run after run, all on the calling thread. A run fails
//   - by fail() or an expect() that is false,
//   - by an exception that leaves `body`, or a fiber with a result that is not taken,
//   - by a deadlock: no fiber can run, and no timer is set,
//   - by fibers that still wait, or sockets that are still open, at the end (explore_options::leaks_fail). Fibers that
//     can run then are run to their ends first,
//   - by more than max_steps steps.
// Throws schedule_failed for the first failed run. Throws std::invalid_argument for no schedules, an unknown strategy
// or replay, or if the schedule to repeat names choices that the run does not have; usage_error if the caller is a
// fiber.
//
// `body` should create all objects that it uses, because the next run begins in the same process. The schedule changes
// only at operations of this library. It does not control atomic variables, locks of the standard library and other
// threads. blocking() and block_in_place() call their function directly. Sockets belong to a simulated network, which
// lives as long as the run. A wait for another file descriptor fails with ENOTSUP.
exploration explore(const explore_options& options, const std::function<void()>& body);
inline exploration explore(const std::function<void()>& body) { return explore({}, body); }

// Explores as explore(), but returns a failure instead of throwing it.
exploration find_failure(const explore_options& options, const std::function<void()>& body);

// Calls `body` as the main fiber of one run without preemptions. Use it for tests of time limits, which then take no
// time. Throws as explore.
void run_with_virtual_time(const std::function<void()>& body);

// The functions below are for the fibers of a run. Elsewhere fail, and an expect that does not hold, throw
// usage_error, and the others have no effect.

// Makes the run fail, with a reason. The run continues to its normal end. The first reason counts.
void fail(const std::string& reason);
// Calls fail(what) unless `holds`.
inline void expect(bool holds, const char* what) {
  if (!holds) fail(std::string("expected: ") + what);
}
// Returns a number below `bound` that the run's strategy chooses, for choices that a test leaves open. 0 outside a run.
std::uint32_t choose(std::uint32_t bound);
// Lets the strategy run other fibers first. Call it between accesses to objects that the library does not see, such as
// atomic variables.
void point();
// Makes `value` a part of the run's digest.
void note(std::uint64_t value);

}  // namespace ulexite::testing
