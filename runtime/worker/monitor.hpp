#pragma once

// The monitor of a runtime: a thread that does the work that a worker cannot do for itself, because it is stuck in a
// long fiber. It ticks only while some worker is awake or wakes up now and then, and sleeps after two ticks in which
// none did.
//
// State
//   starved_     fibers to which the system refused a stack. A queue with a lock, see inject_queue.hpp.
//   counts       wakes is written with the parker's mutex held, the others by the monitor.
//   watched_     stuck_since is read by any thread, as a hint.
//   idle_stacks  see its head comment.
//   asleep_, ticks_on_  guarded by the parker's mutex.
// All else is the monitor's own.

#include <ulexite/base/counter.hpp>
#include <ulexite/runtime/queue/inject_queue.hpp>
#include <ulexite/runtime/worker/idle_stacks.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ulexite::detail {

class runtime_state;
class scheduler;

class monitor {
 public:
  // Stacks of fibers that have waited for `trim_after` are trimmed; 0: never.
  monitor(runtime_state& rt, std::size_t workers, std::chrono::milliseconds trim_after)
      : idle_stacks(rt, trim_after), runtime_(rt), watched_(workers) {}
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  // Ticks until the runtime ends. Called by the monitor's thread.
  void run() noexcept;
  // The functions to call, or null. Set before the first fiber is spawned.
  struct calls {
    // When nothing has happened for a while, and more and more rarely while nothing happens, until it returns true.
    bool (*when_quiet)(runtime_state&) = nullptr;
    // Once each time that a worker has dispatched nothing for `stuck_after`, with that worker and its time. In ns.
    void (*when_stuck)(scheduler&, std::int64_t) = nullptr;
    std::int64_t stuck_after = 0;
    void (*at_tick)(runtime_state&) = nullptr;
  } calls;

  // A fiber or job to which the system refused a stack: each tick tries again. Any thread.
  void retry_later(job& starved) noexcept { starved_.push(starved); }
  [[nodiscard]] bool any_starved() const noexcept { return !starved_.empty(); }
  // When it first saw that this worker dispatched nothing between two ticks; 0: it dispatches, or sleeps. Any thread.
  [[nodiscard]] std::int64_t stuck_since(std::size_t worker) const noexcept {
    return watched_[worker].stuck_since.get();
  }

  // The parker's mutex is held, below.

  // Whether the monitor is in a tick, which may run code of fibers. False for that code itself.
  [[nodiscard]] bool ticks() const noexcept {
    return ticks_on_ != std::thread::id() && ticks_on_ != std::this_thread::get_id();
  }
  // A worker was started.
  void wake() noexcept;
  // A worker leaves its sleep.
  void on_wake() noexcept;
  // The runtime ends (request::end).
  void on_end() noexcept { changed_.notify_one(); }

  struct counts {
    counter wakes, workers_retaken, poller_handoffs, lost_wakeups;
  } counts;

  detail::idle_stacks idle_stacks;

 private:
  // The observations of the last ticks, from which the monitor sees that nothing happens.
  struct activity {
    std::uint64_t seen_wakes = ~std::uint64_t{0};  // the first tick finds that something has happened
    unsigned quiet_ticks = 0;                      // in a row
    std::int64_t last_busy = 0;                    // the last tick before which a worker was awake
    std::int64_t ask_after = tuning::silence;      // calls::when_quiet is called after so long a quiet; 0: no longer
  };
  struct watched {
    std::uint64_t steps = 0;  // at the last tick: dispatches and parks
    hint<std::int64_t> stuck_since;
    bool reported = false;  // that it is stuck
  };
  // The return of unused stacks to the system.
  struct trimming {
    std::int64_t last = 0;
    unsigned left = 0;  // trims that remain: the first marks unused stacks, the second returns them
  };

  void tick() noexcept;
  void trim_stacks(std::int64_t now, bool all_sleep) noexcept;
  void relieve_hogs() noexcept;
  void report_stuck_workers() noexcept;
  void rescue() noexcept;
  [[nodiscard]] bool work_is_lost() const noexcept;
  void retry_starved() noexcept;
  [[nodiscard]] std::int64_t next_tick() noexcept;

  runtime_state& runtime_;
  inject_queue starved_;
  bool asleep_ = false;              // until a worker wakes up
  std::thread::id ticks_on_;         // the thread of a tick that is under way
  std::condition_variable changed_;  // asleep_ was cleared, or the runtime ends
  activity activity_;
  trimming trimming_;
  unsigned lost_ticks_ = 0;       // in a row at which work was found while all workers slept
  std::vector<watched> watched_;  // by worker
};

}  // namespace ulexite::detail
