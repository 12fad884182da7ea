#pragma once

#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <condition_variable>
#include <mutex>

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

 private:
  void signal(bool& flag) noexcept {
    const std::lock_guard lock(mutex_);
    flag = true;
    condition_.notify_one();  // under the lock: see resume
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  bool resumed_ = false;
  bool poked_ = false;

 public:
  const task* handed_off_fiber = nullptr;  // the fiber that is in block_in_place on this thread

  local_values locals;  // the last member: what its values do when they are destroyed may wait
};

}  // namespace ulexite::detail
