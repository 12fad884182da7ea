#pragma once

// The queue that all workers share. Outside threads publish here, and a worker's full queue overflows to it. It is
// first in, first out, except that woken fibers go before others, because they hold a stack and their wait has ended.
// Of four taken items at most three are woken ones if others may be taken, so the others are not starved.
//
// State
//   length_   the number of items. Written under the lock; read without it as a hint. The hint includes all items that
//             were pushed before the reader's fence, unless they were taken.
//   has_woken_   whether there are woken ones. As length_, but only a hint.
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

// The origin of a runnable item: woken; or ordinary, which is new or has yielded.
enum class priority : bool { ordinary, woken };

class inject_queue {
 public:
  void push(job& item) noexcept {
    const std::lock_guard lock(lock_);
    ordinary_.push(item);
    publish_length();
  }
  // Moves all `items` into the queue.
  void push(intrusive_queue<job>& items, priority which = priority::ordinary) noexcept {
    const std::lock_guard lock(lock_);
    (which == priority::woken ? woken_ : ordinary_).splice(items);
    publish_length();
  }

  // Moves up to `count` of the oldest to `ordinary` and `woken`, and at most so many of each.
  void take(std::size_t count, std::size_t most_ordinary, std::size_t most_woken, intrusive_queue<job>& ordinary,
            intrusive_queue<job>& woken) noexcept {
    if (empty()) return;
    const std::lock_guard lock(lock_);
    for (; count > 0; --count) {
      const bool others = !ordinary_.empty() && most_ordinary > 0;
      if (!woken_.empty() && most_woken > 0 && (!others || ++turns_ % woken_turns != 0)) {
        woken.push(*woken_.pop());
        --most_woken;
      } else if (others) {
        ordinary.push(*ordinary_.pop());
        --most_ordinary;
      } else {
        break;
      }
    }
    publish_length();
  }
  // As above. Does not distinguish woken fibers.
  void take(std::size_t count, intrusive_queue<job>& taken) noexcept { take(count, count, count, taken, taken); }

  // Whether woken fibers wait here. A hint.
  [[nodiscard]] bool has_woken() const noexcept { return has_woken_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return length_.load(std::memory_order_seq_cst); }  // A

 private:
  static constexpr unsigned woken_turns = 4;  // one of them is for the others

  void publish_length() noexcept {
    has_woken_.store(!woken_.empty(), std::memory_order_relaxed);                // hint
    length_.store(ordinary_.size() + woken_.size(), std::memory_order_seq_cst);  // A
  }

  spin_lock lock_;  // guards the queues and turns_
  std::atomic<std::size_t> length_{0};
  std::atomic<bool> has_woken_{false};
  intrusive_queue<job> ordinary_, woken_;
  unsigned turns_ = 0;  // choices between the two; every fourth is for ordinary_
};

}  // namespace ulexite::detail
