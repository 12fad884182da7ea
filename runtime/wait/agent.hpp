#pragma once

#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/wait/wait_word.hpp>

#include <cstdint>

namespace ulexite::detail {

class scheduler;
class task;

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
  std::uint8_t held_locks = 0;

  // The agent's own, below.
  std::uint8_t budget = 0;           // operations that need not wait, until the next look at whether to yield
  bool in_use : 1 = false;           // a task was made in its block, and is still there
  bool shielded : 1 = false;         // it does not hear of a stop
  bool expired : 1 = false;          // its deadline was over at some wait: sticky as long as that deadline holds
  bool calls_back : 1 = false;       // it runs stop callbacks
  bool waits_forbidden : 1 = false;  // by no_suspend: then it counts as a job
  bool kept : 1 = false;             // its fiber was abandoned as it stood: the block is never given back
  union {
    agent* next_free;                     // task_pool's, while nobody uses the block
    std::int64_t deadline = no_deadline;  // of all that it does: its cancellation points do not wait beyond
  };

  // The fiber whose agent this is; not for a thread's.
  task& fiber() noexcept { return *reinterpret_cast<task*>(this + 1); }
};

// Makes the agent run on. It is claimed, and the caller is its claimer. Any thread; `worker` is the caller's.
void resume(agent& agent) noexcept;
void resume(agent& agent, scheduler* worker) noexcept;

}  // namespace ulexite::detail
