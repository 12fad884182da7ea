#pragma once

// The branches that a worker offers, and the interrupts of the worker, which a forking or computing fiber checks.
// parallel_invoke and the parallel loops see only this part of the scheduler.
//
// State
//   forks_            the deque of branches, see deque.hpp.
//   stealing_         a thief is at forks_. Written by thieves, read by thieves as a hint.

#include <ulexite/runtime/fork/interrupts.hpp>
#include <ulexite/runtime/queue/deque.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

class branch;
class runtime_state;
class scheduler;
class task;

class fork_queue {
 public:
  fork_queue(scheduler& owner, std::size_t workers) noexcept : owner_(owner), workers_(workers) {}
  fork_queue(const fork_queue&) = delete;
  fork_queue& operator=(const fork_queue&) = delete;

  // Owner only, below.

  // Lets others take `forked`, until try_pop. False if there is no room. There is no fence. So a worker that falls
  // asleep just now may miss the branch. But the owner takes it back soon, and if not, the monitor notices.
  [[nodiscard]] bool offer(branch& forked) noexcept {
    const auto before = forks_.push_after(forked);
    if (before == 0) notify_others();
    return before >= 0;
  }
  // Takes `forked` back. False if another worker has taken it. Call it in the reverse order of the offers.
  [[nodiscard]] bool try_pop(branch& forked) noexcept {
    branch* const youngest = forks_.pop_bottom();
    return youngest == &forked || (youngest && try_pop_below(*youngest, forked));
  }
  // Whether a range should be split. True if all earlier offers were taken, and there are other workers.
  [[nodiscard]] bool wanted() const noexcept { return workers_ > 1 && forks_.seems_empty(); }
  [[nodiscard]] std::size_t worker_limit() const noexcept { return workers_; }
  // Starts a branch of a fiber that has left this worker. Returns the branch's fiber, which must run next, or null. The
  // youngest branch is the smallest, and its frame the most recent.
  task* start_next(bool oldest) noexcept;

  // Yields if the monitor has requested it, because the running fiber has not yielded for long.
  void yield_if_requested() noexcept {
    if (interrupts.asked(request::yield)) [[unlikely]]
      yield_slow();
  }

  // Any thread, below.

  [[nodiscard]] bool may_have_items() const noexcept { return forks_.may_have_items(); }
  // Takes the oldest branch for a worker of `rt`. Returns the branch's fiber, or null.
  task* steal(runtime_state& rt) noexcept;

 private:
  void notify_others() noexcept;
  void simulate_thief() noexcept;
  bool try_pop_below(branch& youngest, branch& forked) noexcept;
  void yield_slow() noexcept;

  scheduler& owner_;           // this is a part of that worker
  const std::size_t workers_;  // the runtime's largest number
  deque<branch, 1024, deque_order::last_in_first_out> forks_;
  std::atomic<bool> stealing_{false};

 public:
  alignas(cache_line) detail::interrupts interrupts;
};

}  // namespace ulexite::detail
