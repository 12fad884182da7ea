#pragma once

// What a worker offers of the branches of its forks, and what a fiber that forks or computes asks of its worker: all
// that parallel_invoke and the parallel loops see of the scheduler.
//
// State
//   forks_            the deque of branches, see deque.hpp.
//   robbed_           a thief is at forks_. Written by thieves, read by thieves as a hint.
//   requests_         what others ask of the owner. yield: the running fiber should yield at its next chance; asked by
//                     the monitor, withdrawn by the owner at the next dispatch; a hint. inspected: asked and withdrawn
//                     by inspection (runtime/worker/inspection.hpp). traced: each dispatch is recorded; a hint.
//                     visit: come to the main stack; withdrawn by the owner, who finds there what it is for.
//                     controlled: the owner asks after every operation which fiber goes on; its own.
//
// Pairings
//   A  inspection.hpp A.

#include <ulexite/runtime/queue/deque.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

class branch;
class runtime_state;
class scheduler;
class task;

// What others ask of a worker, as bits.
enum class request : std::uint8_t { yield = 1, inspected = 2, traced = 4, visit = 8, controlled = 16 };

class fork_queue {
 public:
  fork_queue(scheduler& owner, std::size_t workers) noexcept : owner_(owner), workers_(workers) {}
  fork_queue(const fork_queue&) = delete;
  fork_queue& operator=(const fork_queue&) = delete;

  // Owner only, below.

  // Lets others take `forked`, until take_back. False: there is no room. No fence: a worker that falls asleep just now
  // may miss it, but this one takes it back soon, and if not, the monitor notices.
  [[nodiscard]] bool offer(branch& forked) noexcept {
    const auto before = forks_.push_after(forked);
    if (before == 0) notify_others();
    return before >= 0;
  }
  // False: another has taken it. To be called in the reverse order of the offers.
  [[nodiscard]] bool take_back(branch& forked) noexcept {
    branch* const youngest = forks_.pop_bottom();
    return youngest == &forked || (youngest && take_back_below(*youngest, forked));
  }
  // Whether a range should be split: only if all that was split off before was taken, and there are other workers.
  [[nodiscard]] bool wanted() const noexcept { return workers_ > 1 && forks_.seems_empty(); }
  [[nodiscard]] std::size_t worker_limit() const noexcept { return workers_; }
  // Starts a branch of a fiber that has left this worker: its fiber, to be run next, or null. The youngest is the
  // smallest, and its frame the most recent.
  task* start_next(bool oldest) noexcept;

  // Yields if the monitor has found that the running fiber does not let go.
  void yield_if_requested() noexcept {
    if (yield_requested()) [[unlikely]]
      yield_slow();
  }
  [[nodiscard]] bool yield_requested() const noexcept { return asked_for(request::yield); }
  // Whether anything was asked for, with one load for all.
  [[nodiscard]] bool asked() const noexcept { return requests_.load(std::memory_order_acquire) != 0; }  // A
  [[nodiscard]] bool asked_for(request what) const noexcept {
    return (requests_.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(what)) != 0;  // hint
  }

  // Any thread, below.

  [[nodiscard]] bool may_have_items() const noexcept { return forks_.may_have_items(); }
  void ask(request what) noexcept {
    requests_.fetch_or(static_cast<std::uint8_t>(what), std::memory_order_relaxed);  // A, ordered by its fence
  }
  void withdraw(request what) noexcept {
    requests_.fetch_and(static_cast<std::uint8_t>(~static_cast<unsigned>(what)), std::memory_order_release);  // A
  }
  // Takes the oldest branch for a worker of `home`: its fiber, or null.
  task* steal(runtime_state& home) noexcept;

 private:
  // The last time another worker was woken for forks, to judge whether that was worth it.
  struct notification {
    std::int64_t time = 0;
    std::int64_t taken = 0;  // forks, until then
    std::int64_t pause = 0;  // ns to the next
  };

  void notify_others() noexcept;
  void let_thief_take() noexcept;
  bool take_back_below(branch& youngest, branch& forked) noexcept;
  void yield_slow() noexcept;

  scheduler& owner_;
  const std::size_t workers_;  // of the runtime, at most
  notification last_notification_;
  deque<branch, 1024, deque_order::last_in_first_out> forks_;
  alignas(cache_line) std::atomic<std::uint8_t> requests_{0};
  std::atomic<bool> robbed_{false};
};

}  // namespace ulexite::detail
