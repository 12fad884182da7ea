#pragma once

// The queue that all workers share: what outside threads publish, and what overflows a worker's own. First in, first
// out.
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

class inject_queue {
 public:
  void push(job& item) noexcept {
    const std::lock_guard lock(lock_);
    items_.push(item);
    publish_length();
  }
  // Moves all of `items` here.
  void push(intrusive_queue<job>& items) noexcept {
    const std::lock_guard lock(lock_);
    items_.splice(items);
    publish_length();
  }

  // Moves up to `count` of the oldest to `taken`.
  void take(std::size_t count, intrusive_queue<job>& taken) noexcept {
    if (empty()) return;
    const std::lock_guard lock(lock_);
    for (; count > 0; --count) {
      job* const item = items_.pop();
      if (!item) break;
      taken.push(*item);
    }
    publish_length();
  }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return length_.load(std::memory_order_seq_cst); }  // A

 private:
  void publish_length() noexcept { length_.store(items_.size(), std::memory_order_seq_cst); }  // A

  spin_lock lock_;
  std::atomic<std::size_t> length_{0};
  intrusive_queue<job> items_;
};

}  // namespace ulexite::detail
