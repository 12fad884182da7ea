#pragma once

#include <ulexite/runtime/wait_word.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

namespace ulexite::detail {

class scheduler;
class task;

inline constexpr std::int64_t no_deadline = INT64_MAX;

enum class agent_kind : std::uint8_t {
  fiber,
  thread,
  job,  // may not wait; also a fiber while it runs stop callbacks
};

// Whoever runs, and can be made to wait and be resumed: a fiber or a plain thread. std calls both execution agents.
// A fiber's agent stands right before its task in a block of the pool, and outlives it: as memory it stays an agent as
// long as the runtime lives, so that a stop of everything may touch it at any time.
struct agent {
  wait_word word;
  agent_kind kind = agent_kind::fiber;
  std::uint8_t size_class = 0;  // task_pool's

  // How many locks of this library it holds, modulo 256. Changed by the agent only, when it has got or gives up a lock.
  std::uint8_t held_locks_ = 0;

  // The agent's own, below.
  std::uint8_t budget = 0;      // operations that need not wait, until the next look at whether to yield
  bool in_use : 1 = false;      // a task was made in its block, and is still there
  bool shielded : 1 = false;    // it does not hear of a stop
  bool expired : 1 = false;     // its deadline was over at some wait: sticky as long as that deadline holds
  bool calls_back : 1 = false;  // it runs stop callbacks
  bool kept : 1 = false;        // its fiber was abandoned as it stood: the block is never given back
  union {
    agent* next_free;                     // task_pool's, while nobody uses the block
    std::int64_t deadline = no_deadline;  // of all that it does: its cancellation points do not wait beyond
  };

  // The fiber whose agent this is; not for a thread's.
  task& fiber() noexcept { return *reinterpret_cast<task*>(this + 1); }
};

// What one agent has of one fiber_local. The key is the number of that, which no other gets.
struct local_value {
  explicit local_value(std::uint64_t of) noexcept : key(of) {}
  virtual ~local_value() = default;

  const std::uint64_t key;
  local_value* next = nullptr;
};

// All of them: a list, for there are few. Used by the agent only.
class local_values {
 public:
  local_values() = default;
  local_values(const local_values&) = delete;
  local_values& operator=(const local_values&) = delete;
  ~local_values() { clear(); }

  [[nodiscard]] local_value* find(std::uint64_t key) const noexcept {
    local_value* value = first_;
    while (value && value->key != key) value = value->next;
    return value;
  }
  void add(local_value& value) noexcept {
    value.next = first_;
    first_ = &value;
  }
  // Destroys them, youngest first, with those that the destructors make.
  void clear() noexcept {
    while (local_value* const youngest = first_) {
      first_ = youngest->next;
      delete youngest;
    }
  }

 private:
  local_value* first_ = nullptr;
};

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
  const task* fiber_on_leave = nullptr;  // that stands on this thread, in block_in_place

  local_values locals;  // last, for what its values do when they are destroyed may wait
};

// The agent of the calling fiber or thread.
agent& this_agent() noexcept;

// Who calls, both at once, for that is one call instead of two.
struct caller {
  detail::agent* agent;
  scheduler* worker;  // on which the call is made, until the next switch; null on a plain thread
};
caller this_caller() noexcept;

// Requests a stop, and so runs callbacks of the user's. A fiber may not wait in them: what holds for std::stop_callback
// on threads, that the one who destroys it waits for a call under way elsewhere, is decided by the thread that made the
// request, and a fiber that waits leaves that to others.
void run_stop_callbacks(std::stop_source source) noexcept;

// The values of the calling fiber or thread. Throws std::bad_alloc, usage_error in a job.
local_values& this_agents_locals();

// Makes the agent run on. It is claimed, and the caller is its claimer. Any thread; `worker` is the caller's.
void resume(agent& agent) noexcept;
void resume(agent& agent, scheduler* worker) noexcept;

}  // namespace ulexite::detail
