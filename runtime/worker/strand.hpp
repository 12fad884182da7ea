#pragma once

// Fibers that never run at the same time, on any worker of a runtime, without their own thread: the members of a
// concurrent_context. Named after Kohlhoff's strands in Boost.Asio.
//
// A member is bound (scheduler::run_bound). So each time it leaves its stack the worker returns here, and gives
// the strand to the next member. A member that is dispatched while another runs waits (strand_turn.hpp).
//
// State
//   references_   the number of its users.
//   members_      all fibers of it that have not ended. Guarded by lock_.
//
// Pairings
//   A  release counts down, acq_rel  ->  the last one counts down, acq_rel: it sees the writes of the others.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/queue/strand_turn.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>

#include <atomic>
#include <mutex>
#include <stop_token>
#include <string>

namespace ulexite::detail {

struct agent;
class runtime_state;
class task;

class strand {
 public:
  strand(runtime_state& rt, std::string name) : runtime_(rt), name_(std::move(name)) {}
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;

  [[nodiscard]] runtime_state& runtime() const noexcept { return runtime_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }

  // References are held by the context, by each member until it ends, and by each run under way. A run holds one
  // because a member's end lets the context go before the run has passed the strand on.
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }  // the caller has one already
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;  // A
  }

  // Makes it a member: a task that is not published, or the calling fiber, which then leaves its worker. Throws
  // std::bad_alloc.
  void add_member(task& fresh);
  // The member leaves: it has ended, or goes elsewhere.
  void remove_member(rare_task_state& member) noexcept;

  // A dispatch of a member, on the calling worker: runs it and the members that wait behind it, or makes it wait.
  void run(task& first) noexcept;

  // Asks every member to stop, now and in future. Any thread.
  void request_stop() noexcept;
  // Waits until it has no member. Not a cancellation point. False, without a wait, while another caller waits. Not for
  // members.
  [[nodiscard]] bool wait_until_empty() noexcept;
  [[nodiscard]] bool is_waited_for() noexcept;
  [[nodiscard]] bool empty() noexcept {
    const std::lock_guard lock(lock_);
    return members_.empty();
  }

 private:
  ~strand() = default;

  void pass_to(task& member) noexcept;
  // Lock held. An abandoned waiter never runs again, so its place is free.
  [[nodiscard]] bool another_waits() const noexcept;

  runtime_state& runtime_;
  const std::string name_;
  std::atomic<int> references_{1};
  strand_turn<job> turn_;
  std::stop_source stop_source_;  // for the members' tokens
  spin_lock lock_;                // guards all below
  bool stop_requested_ = false;
  intrusive_list<rare_task_state> members_;
  agent* waiter_ = nullptr;  // for the last member's end
};

}  // namespace ulexite::detail
