#pragma once

// Which worker a thief tries, and when: the thief's own judgement. Owner only.
//
// Fibers that end sooner than they travel between cores are better left to the worker that made them. A thief measures
// how soon after a theft of several fibers it is out of work again. If that was too soon, it is patient: it waits
// before the next theft, longer each time. Meanwhile it remains a searcher, so no other worker is woken for them
// either. Any theft that paid ends the patience, and so does a long sleep. If even one wake costs more than a theft
// gained, its victim wakes no worker for a while (wake_hold.hpp).

#include <ulexite/base/random.hpp>
#include <ulexite/runtime/worker/tuning.hpp>
#include <ulexite/runtime/worker/wake_hold.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

class theft_policy {
 public:
  explicit theft_policy(std::uint64_t seed) noexcept : random_(seed) {}

  // It has taken `count` fibers and jobs from the worker that wakes others by `victim`. Null: from the shared queue, or
  // a branch, for which no push woke this worker.
  void note(std::size_t count, std::int64_t now, wake_hold* victim) noexcept {
    time_ = now;
    count_ = count;
    victim_ = victim;
  }
  // It is out of work. A worker that was refused a search may have slept since then, which counts as if it had worked:
  // enough others search. Sets by the worth of the last theft: the patience, how long it searches, and for how long it
  // steals nothing and the victim wakes no worker.
  void judge(std::int64_t now) noexcept {
    if (count_ == 0) return;
    const bool paid = tuning::theft_paid(now - time_, count_);
    patience_ = tuning::next_patience(paid, count_, patience_);
    if (victim_) {
      hold_ = tuning::next_pause(paid, hold_, tuning::shortest_pause, tuning::longest_hold);
      resume_ = now + hold_;
      if (hold_ > 0) victim_->hold_until(resume_);
    }
    count_ = 0;
  }
  // The worker slept for `time`. A long sleep ends its patience, because what made it patient came more often.
  void note_sleep(std::int64_t time) noexcept {
    if (time >= tuning::longest_patience) patience_ = 0;
  }
  // The work in its queues is its own now, and shows nothing about the theft.
  void forget() noexcept {
    time_ = patience_ = hold_ = resume_ = 0;
    count_ = 0;
  }

  // How long a search lasts at least, in nanoseconds.
  [[nodiscard]] std::int64_t search_time() const noexcept {
    return std::max(hold_ == 0 ? tuning::search_time : tuning::wake_cost, patience_);
  }

  // Whether a search that began at `start` may steal now.
  [[nodiscard]] bool may_steal(std::int64_t start, std::int64_t now) const noexcept {
    return now - start >= patience_ && now >= resume_;
  }
  // Whether it may take a whole batch from the shared queue without a search.
  [[nodiscard]] bool may_take() const noexcept { return patience_ == 0 && count_ < tuning::smallest_batch; }

  // The number of the worker that a search tries first, of `workers`.
  [[nodiscard]] std::size_t first_victim(std::size_t workers) noexcept {
    return random_.below(static_cast<std::uint32_t>(workers));
  }

 private:
  random random_;
  std::int64_t time_ = 0;      // of the last theft
  std::size_t count_ = 0;      // the number of stolen items; 0: it is judged
  std::int64_t patience_ = 0;  // ns
  std::int64_t hold_ = 0;      // ns, from the judgement of the last theft to the next one; 0: it has paid
  std::int64_t resume_ = 0;    // when that time is over
  wake_hold* victim_ = nullptr;
};

}  // namespace ulexite::detail
