#pragma once

// The costs of the machine, and what cores contend for: cache lines, spin locks, mutexes.

#include "engine.hpp"

#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <algorithm>
#include <deque>
#include <vector>

namespace simulation {

// All in ns. "cores/..." are the names of bench/micro/cores.cpp, which measures them; measured on 4 cores of a virtual
// Xeon (2 GHz) that other programs used too. A number marked as a guess was not measured.
struct costs {
  ns line = 150;      // a word that another core wrote last: "cores/line there and back", halved
  ns locked = 5;      // a locked instruction on a line that is here
  ns probe = 200;     // a victim's ring and forks, changed since the last look: "cores/probe 4 lines"
  ns probe_same = 4;  // the same unchanged: four loads from the cache; a guess
  ns transfer = 150;  // of a stolen fiber's block, each; runtime/worker/search.cpp's transfer_cost, a threshold, has
                      // the way back in it too, and more
  ns steal = 300;     // a theft that succeeds, without its line: a guess
  ns wake_cost = 15'000;     // to the waker, of an idle core: an earlier figure; "cores/wake cost" when busy: 4,000
  ns wake_latency = 50'000;  // until the woken runs: the same; "cores/wake latency" when busy: 18,000
  ns poll = 330;             // a turn of the loop that brings nothing: "cores/poll of nothing"
  ns event = 150;            // per event in a turn: epoll's and libevent's part, the claim; a guess
  ns pause = 1'450;          // between two rounds of a searcher: "cores/pause between searches"
  ns spin_pause = 2'900;     // before the first look at a held spin lock: 128 pauses of the same instruction
  ns spin_yield = 500;       // from the fifth look on: sched_yield on a core of one's own; a guess
  ns queued = 10;            // per item that enters or leaves the shared queue with its lock held; a guess
  ns dispatch = 20;          // from one fiber to the next, both warm: a guess
  ns spawn = 60;             // a guess
  ns fork = 10;              // a branch that its owner takes back: a guess
  ns fence = 1'800;          // a heavy fence, and for each worker that runs: "cores/heavy fence" with 1, 2 and 3 others
  ns fence_each = 900;       // that run takes 2.7, 4 and 4.4 us. For more it is a guess
  ns interrupt = 1'000;      // to each of them: 0.3 to 1.7 us were measured
  ns switching = 28;         // half of the 56 of a ping-pong in docs/scheduler.md
  ns mutex_spin = 0;         // experiment: how often a thread retries while the parker's mutex is held; 0: it sleeps
  ns search_time = ulexite::detail::tuning::search_time;
};

// A line that all workers read and some write. A writer owns it for some time; a reader after another's write waits for
// it. The result is the time it takes, from `at` on.
class line {
 public:
  explicit line(std::size_t users) : seen_(users, 0) {}

  ns write(const costs& cost, std::size_t who, ns at) {
    const bool mine = owner_ == who;
    const ns start = std::max(at, free_at_), took = mine ? cost.locked : cost.line;
    free_at_ = start + took;
    busy_ += mine ? 0 : took;
    owner_ = who;
    seen_[who] = ++version_;
    return free_at_ - at;
  }
  ns read(std::size_t who, ns at, ns changed, ns same) {
    if (seen_[who] == version_) return same;
    seen_[who] = version_;
    if (owner_ != who) owner_ = nobody;  // shared: the next write must take it back
    return std::max<ns>(free_at_ - at, 0) + changed;
  }
  // The owner writes, and pays only if another has read since its last write.
  ns write_own(const costs& cost, std::size_t who, ns at) {
    return owner_ == who ? (mark(who), 0) : write(cost, who, at);
  }
  [[nodiscard]] ns busy() const noexcept { return busy_; }

 private:
  static constexpr std::size_t nobody = ~std::size_t{0};
  void mark(std::size_t who) { seen_[who] = ++version_; }

  std::vector<std::uint32_t> seen_;
  std::uint32_t version_ = 0;
  std::size_t owner_ = nobody;
  ns free_at_ = 0, busy_ = 0;
};

// base/spin_lock.hpp: a caller that finds it held looks again after a pause, as in std_atomics::pause.
class spin_lock {
 public:
  spin_lock(engine& engine, const costs& cost) : engine_(engine), cost_(cost) {}

  process lock(std::size_t who) {
    for (unsigned turn = 0; held_; ++turn)
      co_await engine_.delay(turn >= 4 ? cost_.spin_yield : (turn == 0 ? 1 : 2) * cost_.spin_pause);
    held_ = true;
    since_ = engine_.now();
    const ns arrival = last_ == who ? cost_.locked : cost_.line;
    last_ = who;
    co_await engine_.delay(arrival);
    co_return 0;
  }
  void unlock() {
    held_ = false;
    busy_ += engine_.now() - since_;
  }
  [[nodiscard]] ns busy() const noexcept { return busy_; }

 private:
  engine& engine_;
  const costs& cost_;
  bool held_ = false;
  std::size_t last_ = 0;
  ns since_ = 0, busy_ = 0;
};

// std::mutex: a caller that finds it held sleeps. An unlock wakes one sleeper, which may find it held again.
class mutex {
 public:
  mutex(engine& engine, const costs& cost) : engine_(engine), cost_(cost) {}

  process lock() {
    while (held_ && cost_.mutex_spin > 0) co_await engine_.delay(cost_.mutex_spin);
    while (held_) {
      waiting_.emplace_back();
      co_await leave_handle_in{waiting_.back()};
    }
    held_ = true;
    since_ = engine_.now();
    co_await engine_.delay(cost_.line);
    co_return 0;
  }
  process unlock() {
    held_ = false;
    busy_ += engine_.now() - since_;
    if (waiting_.empty()) co_return 0;
    engine_.schedule(waiting_.front(), cost_.wake_latency);
    waiting_.pop_front();
    co_await engine_.delay(cost_.wake_cost);
    co_return 0;
  }
  [[nodiscard]] ns busy() const noexcept { return busy_; }

 private:
  engine& engine_;
  const costs& cost_;
  bool held_ = false;
  std::deque<std::coroutine_handle<>> waiting_;
  ns since_ = 0, busy_ = 0;
};

}  // namespace simulation
