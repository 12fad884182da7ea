#pragma once

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/suspend.hpp>

#include <cstdint>
#include <utility>

namespace ulexite::detail {

// A waiter's place in a queue, in its own frame.
struct wait_node : list_hook {
  explicit wait_node(agent& waiter, void* value = nullptr) noexcept : who(&waiter), slot(value) {}

  agent* who;
  void* slot;  // where a value is taken from or put to
  enum class outcome : std::uint8_t {
    ended,                    // there is nothing more to wait for: a close
    served,                   // by its partner
    again,                    // the partner could not serve it: it takes its turn anew
  } result = outcome::ended;  // written under the queue's lock by whoever ends the wait
};

// Those who wait for the same thing, oldest first. Guarded by a spin lock of its owner, as suspend.hpp describes.
class wait_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
  void push(wait_node& node) noexcept { nodes_.push_back(node); }
  void push_front(wait_node& node) noexcept { nodes_.push_front(node); }

  // Takes the oldest waiter whose wait is not over for another reason, and ends that wait. The caller serves it,
  // releases the lock and then resumes it. Null when there is none. For waits that began with suspend(lock): such a
  // waiter is never found half asleep.
  wait_node* claim_oldest() noexcept {
    while (wait_node* const node = nodes_.pop_front())
      if (node->who->word.claim(wake_reason::notified) == claim_result::won) return node;
    return nullptr;
  }

  // The same for waits that were prepared: the waiter may resume by itself, and vanish with its node. Returns whether
  // one was found, and in `who` whom to resume, if anybody.
  bool claim_oldest_prepared(agent*& who) noexcept {
    while (wait_node* const node = nodes_.pop_front()) {
      agent& waiter = *node->who;
      const claim_result result = waiter.word.claim(wake_reason::notified);
      who = result == claim_result::won ? &waiter : nullptr;
      if (result != claim_result::lost) return true;
    }
    return false;
  }

  // Takes back a node whose wait ended otherwise.
  static void remove(wait_node& node) noexcept {
    if (node.linked()) intrusive_list<wait_node>::remove(node);
  }

  // Ends all waits, and moves those who are to be resumed to the list `woken`.
  void claim_all(intrusive_list<wait_node>& woken) noexcept {
    while (wait_node* const node = claim_oldest()) woken.push_back(*node);
  }

 private:
  intrusive_list<wait_node> nodes_;
};

// Resumes all in `woken`, whose nodes vanish with that.
inline void resume_all(intrusive_list<wait_node>& woken) noexcept {
  while (wait_node* const node = woken.pop_front()) resume(*node->who);
}

// Waits in `queue`, whose lock is held and is released. After a time-out or a cancellation the node is in no queue.
inline wake_reason wait_in(wait_queue& queue, spin_lock& lock, wait_node& node, cancellable cancellable,
                           std::int64_t deadline = no_deadline) noexcept {
  queue.push(node);
  const wake_reason reason = suspend(*node.who, lock, cancellable, deadline);
  if (reason != wake_reason::notified) {
    lock.lock();
    wait_queue::remove(node);
    lock.unlock();
  }
  return reason;
}

}  // namespace ulexite::detail
