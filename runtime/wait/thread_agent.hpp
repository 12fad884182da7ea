#pragma once

#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace ulexite::detail {

// The agent of a plain thread, which blocks when it waits.
class thread_agent : public agent {
 public:
  thread_agent() noexcept { kind = agent_kind::thread; }

  // Ends the present or the next block. Any thread. The object may be destroyed as soon as the blocked thread has seen
  // it.
  void resume() noexcept {
    const std::lock_guard lock(mutex_);
    resumed_ = true;
    count(false);
    condition_.notify_one();  // under the lock: see above
  }

  // Blocks until resumed (true), or until `deadline` (steady clock, nanoseconds) has passed (false). Called by the
  // thread itself.
  bool block(std::int64_t deadline) noexcept {
    std::unique_lock lock(mutex_);
    const auto resumed = [this] { return std::exchange(resumed_, false); };
    if (deadline != no_deadline) {
      const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
      return condition_.wait_until(lock, until, resumed);
    }
    count(!resumed_);
    condition_.wait(lock, resumed);
    return true;
  }

  // The number of threads in a block without a deadline that has not been ended yet. Any thread.
  static std::size_t count_blocked() noexcept { return blocked_.load(std::memory_order_relaxed); }  // hint

 private:
  // Adds this thread to the blocked threads, or removes it. Mutex held.
  void count(bool blocked) noexcept {
    if (std::exchange(counted_, blocked) == blocked) return;
    blocked_.fetch_add(blocked ? 1 : std::size_t(-1), std::memory_order_relaxed);  // counter
  }

  static constinit inline std::atomic<std::size_t> blocked_{0};

  std::mutex mutex_;  // guards the flags
  std::condition_variable condition_;
  bool resumed_ = false;  // block must return true
  bool counted_ = false;  // this thread is in blocked_

 public:
  const task* handed_off_fiber = nullptr;  // the fiber that is in block_in_place on this thread
  bool is_listed = true;                   // dumps show its waits

  local_values locals;  // the last member, because the destructors of its values may wait
};

}  // namespace ulexite::detail
