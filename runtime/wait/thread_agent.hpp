#pragma once

#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace ulexite::detail {

// The agent of a plain thread, which blocks when it waits.
class thread_agent : public agent {
 public:
  thread_agent() noexcept { kind = agent_kind::thread; }

  // Ends block. Any thread. The object may be destroyed as soon as the blocked thread has seen it.
  void resume() noexcept { signal(resumed_); }
  // Ends the present or the next block without a resume, once. Any thread that knows that the object exists.
  void poke() noexcept { signal(poked_); }

  // Drops a poke that ended no block, because it would end the next one. After this no thread may poke.
  void forget_poke() noexcept {
    const std::lock_guard lock(mutex_);
    poked_ = false;
  }

  // Blocks until resumed (true), or poked, or `deadline` (steady clock, nanoseconds) has passed (false). Called by the
  // thread itself.
  bool block(std::int64_t deadline) noexcept;

  // The number of threads in a block without a deadline that has not been ended yet. Any thread.
  static std::size_t count_blocked() noexcept { return blocked_.load(std::memory_order_relaxed); }  // hint

 private:
  void signal(bool& flag) noexcept {
    const std::lock_guard lock(mutex_);
    flag = true;
    count(false);
    condition_.notify_one();  // under the lock: see resume
  }

  // Adds this thread to the blocked threads, or removes it. Mutex held.
  void count(bool blocked) noexcept {
    if (std::exchange(counted_, blocked) == blocked) return;
    blocked_.fetch_add(blocked ? 1 : std::size_t(-1), std::memory_order_relaxed);  // counter
  }

  static constinit inline std::atomic<std::size_t> blocked_{0};

  std::mutex mutex_;  // guards the flags
  std::condition_variable condition_;
  bool resumed_ = false;  // block must return true
  bool poked_ = false;    // block must return, and its caller must check its wait
  bool counted_ = false;  // this thread is in blocked_

 public:
  const task* handed_off_fiber = nullptr;  // the fiber that is in block_in_place on this thread
  bool is_listed = true;                   // dumps show its waits

  local_values locals;  // the last member, because the destructors of its values may wait
};

}  // namespace ulexite::detail
