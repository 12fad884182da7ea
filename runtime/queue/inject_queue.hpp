#pragma once

// The queue that all workers share: what outside threads publish, and what overflows a worker's own. First in, first
// out, but that fibers which were woken go before those that were not: they hold a stack, and what they wait for has come.
// Of four that are taken three were woken, if there are any, so that the others are not starved.
//
// State
//   length_   how many are in it. Written under the lock; read without it as a hint that is never too small for what
//             was pushed before the reader's fence.
//
// Pairings
//   A  push stores length_, seq_cst  ->  empty loads it, seq_cst: half of idle.hpp's pairing A.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>
#include <ulexite/base/spin_lock.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace ulexite::detail {

// What a runnable comes from: was it woken, or is it new, or does it wait its turn once more?
enum class turn : bool { ordinary, woken };

class inject_queue {
 public:
  void push(job& item) noexcept {
    const std::lock_guard lock(lock_);
    ordinary_.push(item);
    publish_length();
  }
  // Moves all of `items` here.
  void push(intrusive_queue<job>& items, turn which = turn::ordinary) noexcept {
    const std::lock_guard lock(lock_);
    (which == turn::woken ? woken_ : ordinary_).splice(items);
    publish_length();
  }

  // Moves up to `count` of the oldest to `ordinary` and `woken`.
  void take(std::size_t count, intrusive_queue<job>& ordinary, intrusive_queue<job>& woken) noexcept {
    if (empty()) return;
    const std::lock_guard lock(lock_);
    for (; count > 0 && !(ordinary_.empty() && woken_.empty()); --count) {
      if (!woken_.empty() && (ordinary_.empty() || ++turns_ % woken_turns != 0))
        woken.push(*woken_.pop());
      else
        ordinary.push(*ordinary_.pop());
    }
    publish_length();
  }
  // The same where none was woken.
  void take(std::size_t count, intrusive_queue<job>& taken) noexcept { take(count, taken, taken); }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return length_.load(std::memory_order_seq_cst); }  // A

 private:
  static constexpr unsigned woken_turns = 4;  // of which one is for the others

  void publish_length() noexcept { length_.store(ordinary_.size() + woken_.size(), std::memory_order_seq_cst); }  // A

  spin_lock lock_;  // guards the queues and turns_
  std::atomic<std::size_t> length_{0};
  intrusive_queue<job> ordinary_, woken_;
  unsigned turns_ = 0;
};

}  // namespace ulexite::detail
