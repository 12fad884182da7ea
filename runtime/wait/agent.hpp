#pragma once

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>
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

// A fiber or a plain thread, as something that runs, waits and is resumed. std calls both execution agents. A fiber's
// agent is directly before its task in a block of the pool, and outlives the task. The block stays a valid agent as
// long as the runtime exists, so runtime::request_stop may access it at any time.
struct agent {
  wait_word word;
  agent_kind kind = agent_kind::fiber;
  std::uint8_t size_class = 0;  // for task_pool

  // The number of locks of this library that it holds, modulo 256. Changed by the agent only, after it has taken a lock
  // or before it releases one.
  std::uint8_t held_locks = 0;

  // The members below are used by the agent only.
  std::uint8_t budget = 0;           // operations that do not have to wait, until the next check for a yield
  bool in_use : 1 = false;           // its block has a task
  bool shielded : 1 = false;         // it ignores requests to stop
  bool expired : 1 = false;          // a wait has met its deadline; stays set as long as this deadline applies
  bool calls_back : 1 = false;       // it runs stop callbacks
  bool waits_forbidden : 1 = false;  // by no_suspend_scope: then it counts as a job
  bool kept : 1 = false;             // its fiber was abandoned: the block is never returned
  union {
    agent* next_free;                     // for task_pool, while the block is unused
    std::int64_t deadline = no_deadline;  // its cancellation points do not wait beyond it
  };

  // The fiber of this agent; not for a thread's.
  task& fiber() noexcept { return *reinterpret_cast<task*>(this + 1); }
};

// Makes the agent continue. The agent is claimed, and the caller is its claimer. Any thread; `worker` is the caller's.
void resume(agent& agent) noexcept;
void resume(agent& agent, scheduler* worker) noexcept;
// As resume, for an agent to which a lock was handed. It runs soon, because others wait until it unlocks.
void resume_holder(agent& agent, scheduler* worker) noexcept;
// Ends the present wait of a fiber's agent if it is cancellable, and adds the fiber to those that the caller must make
// runnable. Called after its request to stop and a heavy fence (wait_word.hpp C). Any thread.
void cancel_wait(agent& agent, intrusive_queue<job>& cancelled) noexcept;

// Connects the event loop's events with fibers. A waiter keeps its event in its frame. These are templates, because
// this layer's headers do not see the loop's.

// Makes `event`, an evloop event, end a wait of `waiter` with `Reason`.
template <wake_reason Reason, class Event>
void bind_event(Event& event, agent& waiter) noexcept {
  event.waiter = &waiter;
  event.claim = [](auto& fired) noexcept {
    return static_cast<agent*>(fired.waiter)->word.claim(Reason) == claim_result::won;
  };
}

// The fiber that waited for a ready event.
template <class Event>
task& task_of(Event& ready) noexcept {
  return static_cast<agent*>(ready.waiter)->fiber();
}

}  // namespace ulexite::detail
