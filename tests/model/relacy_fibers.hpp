#pragma once

// The base of the models of channels, select and forks: fibers that wait, as in suspend.cpp, and queues of them, as in
// wait_queue.hpp. The wait word and the spin lock are the shipped ones. A fiber is a thread of Relacy's that blocks
// while it is suspended. If no thread resumes it, that is a deadlock, which Relacy reports.
//
// All data under a lock, and all data that one thread leaves for another, are rl::var. Relacy reports accesses to them
// that nothing orders. Nodes are members of the test, not of frames, so that a claimer that is too late is detected.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/wait_word.hpp>

#include <utility>

#include "relacy_atomics.hpp"

namespace model {

using ulexite::detail::claim_result;
using ulexite::detail::wake_reason;

enum class cancellable : bool { no, yes };
enum class timed : bool { no, yes };

template <class Atomics>
struct fibers {
  using spin_lock = ulexite::detail::basic_spin_lock<Atomics>;

  struct agent {
    ulexite::detail::basic_wait_word<Atomics> word;

    agent() { context_($) = 0; }

    // The timer's thread: claims the present or next wait with a time limit; none after finish. In the library an event
    // loop does this, also under its own lock.
    void fire() {
      bool wake = false;
      {
        std::unique_lock lock(timer_mutex_);
        while (!armed_ && !finished_) timer_changed_.wait(lock);
        if (std::exchange(armed_, false)) wake = word.claim(wake_reason::timed_out) == claim_result::won;
      }
      if (wake) resume();
    }
    // The end of the fiber.
    void finish() {
      std::unique_lock lock(timer_mutex_);
      finished_ = true;
      timer_changed_.notify_all();
    }

    // Any thread, once.
    void stop() {
      RL_ASSERT(word.request_stop());
      Atomics::heavy_fence();
      if (word.cancel()) resume();
    }

    // By the claimer that won, once.
    void resume() {
      RL_ASSERT(int(context_($)) == 1);
      std::unique_lock lock(mutex_);
      RL_ASSERT(!runnable_);
      runnable_ = true;
      changed_.notify_one();
    }

    // The fiber itself. Prepared if it holds no lock.
    wake_reason suspend(spin_lock* held, cancellable cancellable, timed timed) {
      bool prepared = !held;
      if (timed == timed::yes) {
        if (!prepared) word.prepare();
        prepared = true;
        set_timer(true);
      }
      context_($) = 1;
      const bool waits = word.commit(prepared, bool(cancellable));
      if (held) held->unlock();
      if (waits) block();
      context_($) = 0;
      if (timed == timed::yes) set_timer(false);
      return word.reason();
    }

   private:
    void block() {
      std::unique_lock lock(mutex_);
      while (!runnable_) changed_.wait(lock);
      runnable_ = false;
    }
    void set_timer(bool armed) {
      std::unique_lock lock(timer_mutex_);
      armed_ = armed;
      timer_changed_.notify_all();
    }

    rl::var<int> context_;  // 1 while it is saved
    relacy_mutex mutex_, timer_mutex_;
    relacy_condition_variable changed_, timer_changed_;
    bool runnable_ = false, armed_ = false, finished_ = false;
  };

  enum outcome { pending, ended, served };

  struct wait_node : ulexite::detail::list_hook {
    agent* who = nullptr;
    rl::var<int>* slot = nullptr;
    rl::var<int> result;

    // For the next wait. The fiber must have left the queue of the last one.
    void begin(agent& waiter, rl::var<int>* value = nullptr) {
      RL_ASSERT(!this->linked());
      who = &waiter;
      slot = value;
      result($) = pending;
    }
  };

  struct claimed_wait {
    wait_node* node = nullptr;
    agent* who = nullptr;
    explicit operator bool() const { return node != nullptr; }
  };

  class wait_queue {
   public:
    wait_queue() { guarded_($) = 0; }

    bool empty() {
      touch();
      return nodes_.empty();
    }
    void push(wait_node& node) {
      touch();
      nodes_.push_back(node);
    }
    void push_front(wait_node& node) {
      touch();
      nodes_.push_front(node);
    }
    claimed_wait claim_oldest() {
      while (wait_node* const node = pop()) {
        agent& waiter = *node->who;
        const claim_result result = waiter.word.claim(wake_reason::notified);
        if (result != claim_result::lost) return {node, result == claim_result::won ? &waiter : nullptr};
      }
      return {};
    }
    wait_node& oldest() {
      touch();
      return nodes_.front();
    }
    // Takes the oldest. There must be one.
    claimed_wait claim_front() {
      wait_node* const node = pop();
      const claim_result result = node->who->word.claim(wake_reason::notified);
      if (result == claim_result::lost) return {};
      return {node, result == claim_result::won ? node->who : nullptr};
    }
    void remove(wait_node& node) {
      touch();
      if (node.linked()) nodes_.remove(node);
    }
    wait_node* pop() {
      touch();
      return nodes_.pop_front();
    }

   private:
    void touch() { guarded_($) = 1; }

    ulexite::detail::intrusive_list<wait_node> nodes_;
    rl::var<int> guarded_;  // written wherever the links are used
  };

  // Called with the lock held; releases it.
  static wake_reason wait_in(wait_queue& queue, spin_lock& lock, wait_node& node, cancellable cancellable, timed timed,
                             bool unlinks = true) {
    queue.push(node);
    const wake_reason reason = node.who->suspend(&lock, cancellable, timed);
    if (reason != wake_reason::notified && unlinks) {
      lock.lock();
      queue.remove(node);
      lock.unlock();
    }
    return reason;
  }
};

}  // namespace model
