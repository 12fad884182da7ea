#pragma once

// The steal and wake protocol, as runtime/worker/search.cpp, parker.hpp, idle.hpp, scheduler.cpp and inject_queue.hpp
// have it: the functions have the names they have there, and the policies are the library's. Each worker has a core of
// its own (the runtime's crowded is false). Left out: the monitor, thefts from stalled workers at maintenance, the time
// that woken fibers have after a long turn of the ring, and what no workload here uses: stacks, cancellation, timers.

#include "machine.hpp"

#include <ulexite/runtime/worker_parts/victims.hpp>
#include <ulexite/runtime/worker_parts/wake_policy.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace simulation {

using namespace ulexite::detail::tuning;

using fiber = int;  // what it means is the workload's
inline constexpr fiber none = -1;

struct counts {
  std::int64_t dispatches = 0, steals = 0, stolen = 0, probes = 0, wakes = 0, overflows = 0, parks = 0, polls = 0;
  ns work = 0;  // what fibers computed
};

struct worker {
  worker(std::size_t number, std::size_t users, std::uint64_t seed)
      : index(number), queues(users), seen(number * 977 + 1 + seed * 1'000'003, users) {}

  [[nodiscard]] bool may_have_work() const noexcept { return !ring.empty() || !forks.empty(); }

  std::size_t index;
  std::deque<fiber> ring, forks;
  fiber slot = none;
  std::size_t came = 0;  // into the ring since it was filled from the shared queue
  line queues;           // of ring and forks
  ns debt = 0;           // time that has passed for it since the engine's now
  ns arriving = 0;       // the way of what it took from others, to be paid when that runs
  unsigned until_maintenance = 1, dispatches_per_maintenance = 1, slot_streak = 0;
  ns last_maintenance = 0, last_poll = 0;
  ns idle = 0;  // since the last maintenance
  bool eager = true;
  bool polled = false, searching = false, notified = false, ran = false;
  ulexite::detail::victims seen;
  ulexite::detail::wake_pause push_wakes, slot_wakes;
  bool slot_due = false, has_suppressed_pushes = false;
  std::uint32_t thefts = 0;  // from it
  std::uint64_t dispatches = 0, spawned = 0;
  std::coroutine_handle<> asleep;
};

// In the shared queue: a fiber, and the core that has its memory.
struct shared_fiber {
  fiber which;
  std::size_t from;
};

class runtime;

class workload {
 public:
  virtual ~workload() = default;
  virtual void begin(runtime& on) = 0;
  virtual process run(runtime& on, worker& here, fiber which) = 0;
};

class runtime {
 public:
  runtime(std::size_t workers, const costs& cost, workload& load, std::uint64_t seed);

  void run();  // until finish()
  void finish();

  // For fibers, on the worker that runs them.
  process compute(worker& here, ns time);
  process add(worker& here, fiber spawned);   // to the ring, and notify
  process wake(worker& here, fiber woken);    // to the slot
  process offer(worker& here, fiber forked);  // to the forks
  process try_pop(worker& here);              // the youngest of them, or none
  // For a thread that is no worker.
  process inject(fiber runnable);
  // For the network: a descriptor became ready.
  void event(fiber waiter);

  [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }
  engine clock;
  const costs cost;
  counts counted;
  ns all_ran = 0;  // when the last worker ran its first fiber
  ns began = 0, finished = 0;
  ns source_busy = 0;  // the single source of all work, a fiber or thread, if there is one

  struct shares {  // of the time, that each serialised resource was busy
    double shared_queue, parker, idle_word, fences, event_loop, ring, source;  // ring: the busiest one
  };
  [[nodiscard]] shares utilisation() const;

 private:
  process loop(worker& here);
  process next(worker& here);
  fiber next_local(worker& here);
  process maintenance(worker& here);
  process maintenance_share(worker& here);
  process take_injected(worker& here, std::size_t most);
  process take_from_others(worker& here, bool slots_too);
  process steal(worker& here, bool slots_too);
  process steal_from(worker& thief, worker& victim, bool fibers);
  process steal_slot(worker& thief, worker& victim);
  process heavy_fence(worker& here);
  process search(worker& here);
  process poll_events(worker& here, bool run_first);
  process distribute(worker& here, std::vector<fiber> ready, bool run_first);
  process push_ring(worker& here, fiber runnable);
  process push(worker& here, fiber runnable);
  process announce_pushes(worker& here);
  process notify(worker& here);
  process announce_forks(worker& here);
  process announce_slot(worker& here);
  process wake_one(worker& here);
  process end_search(worker& here, bool eager);
  process park(worker& here);
  auto settle(worker& here) { return clock.delay(std::exchange(here.debt, 0)); }  // lets the debt pass
  void write_idle(worker& here);
  [[nodiscard]] ns look_at(worker& here, worker& victim);
  [[nodiscard]] bool any_work(worker& here);
  [[nodiscard]] bool nobody_polls() const noexcept { return sleeping_ > 0 && searching_ == 0 && !poller_; }
  [[nodiscard]] std::size_t awake() const noexcept { return workers_.size() - sleeping_; }
  [[nodiscard]] bool serves_slowly(worker& here, worker& victim);
  [[nodiscard]] std::vector<fiber> take_ready();
  void wake_loop();

  workload& load_;
  std::vector<std::unique_ptr<worker>> workers_;
  worker outside_;  // represents threads that are no workers

  std::deque<shared_fiber> injected_;
  spin_lock injected_lock_;
  mutex parker_;
  line idle_;
  std::size_t searching_ = 0, sleeping_ = 0;
  std::vector<worker*> sleepers_;  // newest last
  worker* in_loop_ = nullptr;
  worker* poller_ = nullptr;
  bool loop_woken_ = false;
  ns loop_busy_ = 0;
  ns fence_free_at_ = 0, fences_busy_ = 0;
  std::deque<fiber> ready_;  // what epoll would bring
};

}  // namespace simulation
