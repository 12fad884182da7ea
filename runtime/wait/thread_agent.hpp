#pragma once

#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace ulexite::detail {

// The agent of a plain thread, which really blocks.
class thread_agent : public agent {
 public:
  thread_agent() noexcept { kind = agent_kind::thread; }

  // Ends block. Any thread; the object may be gone as soon as the blocked thread has seen it.
  void resume() noexcept { signal(resumed_); }
  // Ends block without a resume, once. Sticky. Any thread that knows the object to live.
  void poke() noexcept { signal(poked_); }

  // Forgets a poke that ended no block: it would end the next one. Nobody may poke any more.
  void forget_poke() noexcept {
    const std::lock_guard lock(mutex_);
    poked_ = false;
  }

  // Blocks until resumed (true), or poked, or `deadline` (steady clock, nanoseconds) is over (false). The thread
  // itself.
  bool block(std::int64_t deadline) noexcept;

  // How many threads are in a block without a deadline that nothing has ended so far. Any thread.
  static std::size_t count_blocked() noexcept { return blocked_.load(std::memory_order_relaxed); }  // hint

 private:
  void signal(bool& flag) noexcept {
    const std::lock_guard lock(mutex_);
    flag = true;
    count(false);
    condition_.notify_one();  // under the lock: see resume
  }

  // Counts this thread among the blocked, or no longer. With the mutex.
  void count(bool blocked) noexcept {
    if (std::exchange(counted_, blocked) == blocked) return;
    blocked_.fetch_add(blocked ? 1 : std::size_t(-1), std::memory_order_relaxed);  // counter
  }

  static constinit inline std::atomic<std::size_t> blocked_{0};

  std::mutex mutex_;
  std::condition_variable condition_;
  bool resumed_ = false;
  bool poked_ = false;
  bool counted_ = false;

 public:
  const task* handed_off_fiber = nullptr;  // the fiber that is in block_in_place on this thread

  local_values locals;  // the last member: what its values do when they are destroyed may wait
};

}  // namespace ulexite::detail
