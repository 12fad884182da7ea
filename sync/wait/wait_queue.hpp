#pragma once

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <cstdint>
#include <utility>

namespace ulexite::detail {

// A waiter's place in a queue, in its own frame.
struct wait_node : list_hook {
  wait_node() = default;
  explicit wait_node(agent& waiter, void* value = nullptr) noexcept : who(&waiter), slot(value) {}

  agent* who = nullptr;
  void* slot = nullptr;  // where a value is taken from or put to
  enum class outcome : std::uint8_t {
    pending,
    ended,                      // the wait has no object any longer: a close
    served,                     // by its partner, or by the end of what it waits for
    again,                      // the partner could not serve it: it takes its turn again
  } result = outcome::pending;  // written under the queue's lock by the thread that ends the wait
};

// A wait that the caller has ended, and the agent to resume. The agent is null if the waiter was not yet asleep: it
// continues by itself. Then its node may be used only if the waiter takes the queue's lock before it leaves.
struct claimed_wait {
  wait_node* node = nullptr;
  agent* who = nullptr;
  explicit operator bool() const noexcept { return node != nullptr; }
};

// Its destructor resumes the agent that it was given. Declare it before a lock, so that it resumes after the lock's
// release. `worker`: the caller's.
struct deferred_resume {
  scheduler* const worker;
  agent* who = nullptr;
  bool holds = false;  // a lock was handed to it

  explicit deferred_resume(scheduler* callers) noexcept : worker(callers) {}
  deferred_resume(const deferred_resume&) = delete;
  deferred_resume& operator=(const deferred_resume&) = delete;
  ~deferred_resume() {
    if (!who) return;
    if (holds) {
      resume_holder(*who, worker);
    } else {
      resume(*who, worker);
    }
  }
};

// The waiters of one object, oldest first. Guarded by a spin lock of that object, as suspend.hpp describes.
class wait_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
  // Whether it is empty, without abandoned waiters. It removes the abandoned waiters at the front.
  [[nodiscard]] bool nobody_waits() noexcept {
    while (!nodes_.empty() && nodes_.front().who->word.abandoned()) nodes_.pop_front();
    return nodes_.empty();
  }
  // The queue must not be empty.
  [[nodiscard]] wait_node& oldest() noexcept { return nodes_.front(); }
  void push(wait_node& node) noexcept { nodes_.push_back(node); }
  void push_front(wait_node& node) noexcept { nodes_.push_front(node); }

  // Takes waiters, oldest first, until it can end the wait of one. The caller serves this waiter, releases the lock and
  // then resumes it. Waits that have ended for another reason are dropped. None if no waiter remains.
  claimed_wait claim_oldest() noexcept { return empty() ? claimed_wait{} : claim_first(); }

  // Takes the oldest waiter, and ends its wait. None if the wait has ended for another reason. The queue must not be
  // empty.
  claimed_wait claim_front() noexcept {
    wait_node& node = *nodes_.pop_front();
    agent& waiter = *node.who;
    const claim_result result = waiter.word.claim(wake_reason::notified);
    if (result == claim_result::lost) return {};
    return {&node, result == claim_result::won ? &waiter : nullptr};
  }

  // Removes a node after its wait has ended for another reason.
  static void remove(wait_node& node) noexcept {
    if (node.linked()) intrusive_list<wait_node>::remove(node);
  }

  // Ends all waits, and moves the waiters that the caller must resume to the list `woken`.
  void claim_all(intrusive_list<wait_node>& woken) noexcept {
    while (const claimed_wait claimed = claim_oldest()) serve(claimed, woken);
  }
  // For a waiter that gets no value, only the end of its wait.
  static void serve(const claimed_wait& claimed, intrusive_list<wait_node>& woken) noexcept {
    claimed.node->result = wait_node::outcome::served;
    if (claimed.who) woken.push_back(*claimed.node);
  }

  // Takes the oldest waiter, even if its wait has ended; null when there is none.
  wait_node* pop() noexcept { return nodes_.pop_front(); }

 private:
  // Only the check for an empty queue is inline.
  [[gnu::noinline]] claimed_wait claim_first() noexcept {
    while (!nodes_.empty())
      if (const claimed_wait claimed = claim_front()) return claimed;
    return {};
  }

  intrusive_list<wait_node> nodes_;
};

// Resumes all in `woken`. A waiter destroys its node after that.
inline void resume_all(intrusive_list<wait_node>& woken) noexcept {
  while (wait_node* const node = woken.pop_front()) resume(*node->who);
}

// The same for waiters that were given a lock, or permits.
inline void resume_holders(intrusive_list<wait_node>& woken) noexcept {
  if (woken.empty()) return;
  scheduler* const worker = this_caller().worker;
  while (wait_node* const node = woken.pop_front()) resume_holder(*node->who, worker);
}

// Waits in `queue`. Called with its lock held; releases it. After a time-out or a cancellation the node is in no queue.
inline wake_reason wait_in(wait_queue& queue, spin_lock& lock, wait_node& node, wait_mode mode,
                           std::int64_t deadline = no_deadline) noexcept {
  queue.push(node);
  const wake_reason reason = suspend_and_unlock(*node.who, lock, mode, deadline);
  if (reason != wake_reason::notified) {
    lock.lock();
    wait_queue::remove(node);
    lock.unlock();
  }
  return reason;
}

// As wait_in, but a cancellation point; `kind` and `object` are for reports. False if `deadline` was over first. Throws
// operation_cancelled.
inline bool wait_or_throw(wait_queue& queue, spin_lock& lock, wait_node& node, wait_kind kind, const void* object,
                          std::int64_t deadline = no_deadline) {
  const wake_reason reason = wait_in(queue, lock, node, waiting_for(kind, object, cancellable::yes), deadline);
  if (reason == wake_reason::cancelled) throw_cancelled();
  return reason == wake_reason::notified;
}

}  // namespace ulexite::detail
