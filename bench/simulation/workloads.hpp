#pragma once

// The work for the simulated runtime.

#include "runtime.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace simulation {

inline bool each_once(const std::vector<char>& done) {
  return std::all_of(done.begin(), done.end(), [](char times) { return times == 1; });
}

// One fiber, on the worker that is woken for it, spawns the others, which compute and end.
class burst : public workload {
 public:
  burst(int fibers, ns length) : done_(static_cast<std::size_t>(fibers)), length_(length) {}
  void begin(runtime& on) override { on.clock.start(inject(on)); }
  process run(runtime& on, worker& here, fiber which) override {
    if (which == root()) {
      const ns start = on.began = on.clock.now();
      for (fiber f = 0; f < root(); ++f) {
        here.debt += on.cost.spawn;
        co_await on.add(here, f);
        co_await on.clock.delay(std::exchange(here.debt, 0));
      }
      on.source_busy = on.clock.now() - start;
      co_return 0;
    }
    co_await on.compute(here, length_);
    ++done_[static_cast<std::size_t>(which)];
    if (++ended_ == root()) on.finish();
    co_return 0;
  }
  [[nodiscard]] bool right() const { return each_once(done_); }

 private:
  [[nodiscard]] fiber root() const { return static_cast<fiber>(done_.size()); }
  process inject(runtime& on) { co_return co_await on.inject(root()); }
  std::vector<char> done_;
  ns length_;
  int ended_ = 0;
};

// A binary tree of forks, numbered like a heap's: i forks 2i+1, and goes on with 2i; the leaves compute. The thief of a
// branch continues from there. There are no joins.
class fork_join : public workload {
 public:
  fork_join(int leaves, ns leaf) : done_(static_cast<std::size_t>(leaves)), leaf_(leaf) {}
  void begin(runtime& on) override { on.clock.start(inject(on)); }
  process run(runtime& on, worker& here, fiber which) override {
    for (fiber at = which; at != none; at = co_await on.try_pop(here)) {
      for (; at < leaves(); at *= 2) co_await on.offer(here, 2 * at + 1);
      co_await on.compute(here, leaf_);
      ++done_[static_cast<std::size_t>(at - leaves())];
      if (++ended_ == leaves()) on.finish();
    }
    co_return 0;
  }
  [[nodiscard]] bool right() const { return each_once(done_); }

 private:
  [[nodiscard]] int leaves() const { return static_cast<int>(done_.size()); }
  process inject(runtime& on) { co_return co_await on.inject(1); }
  std::vector<char> done_;
  ns leaf_;
  int ended_ = 0;
};

// A pair for each worker; a and b wake each other in turns, fibers 2i and 2i+1.
class ping_pong : public workload {
 public:
  ping_pong(int pairs, int each) : last_(static_cast<std::size_t>(pairs), none), each_(each) {}
  void begin(runtime& on) override { on.clock.start(inject(on)); }
  process run(runtime& on, worker& here, fiber which) override {
    if (which == root()) {
      for (fiber f = 0; f < root(); f += 2) {
        here.debt += on.cost.spawn;
        co_await on.add(here, f);
      }
      co_return 0;
    }
    right_ = right_ && std::exchange(last_[static_cast<std::size_t>(which / 2)], which) != which;
    co_await on.compute(here, on.cost.switching - on.cost.dispatch);
    if (++total_ == total() / 2) {  // by now all pairs have their workers
      from_ = on.clock.now();
      steals_before = on.counted.steals;
      wakes_before = on.counted.wakes;
    }
    if (total_ == total()) {
      steady = on.clock.now() - from_;
      on.finish();
    }
    co_await on.wake(here, which ^ 1);
    co_return 0;
  }
  [[nodiscard]] int total() const { return each_ * static_cast<int>(last_.size()); }
  [[nodiscard]] bool right() const { return right_; }
  ns steady = 1;  // how long the second half took
  std::int64_t steals_before = 0, wakes_before = 0;

 private:
  [[nodiscard]] fiber root() const { return 2 * static_cast<fiber>(last_.size()); }
  process inject(runtime& on) { co_return co_await on.inject(root()); }
  std::vector<fiber> last_;  // who ran last, of each pair
  bool right_ = true;
  int each_, total_ = 0;
  ns from_ = 0;
};

// A thread that is no worker injects a fiber every so often.
class outside : public workload {
 public:
  outside(int fibers, ns length, ns interval)
      : done_(static_cast<std::size_t>(fibers)), length_(length), interval_(interval) {}
  void begin(runtime& on) override { on.clock.start(produce(on)); }
  process run(runtime& on, worker& here, fiber which) override {
    co_await on.compute(here, length_);
    ++done_[static_cast<std::size_t>(which)];
    if (++ended_ == fibers()) on.finish();
    co_return 0;
  }
  [[nodiscard]] bool right() const { return each_once(done_); }

 private:
  process produce(runtime& on) {
    for (fiber f = 0; f < fibers(); ++f) {
      co_await on.clock.delay(f * interval_ - on.clock.now());  // late if injecting takes longer than that
      const ns start = on.clock.now();
      co_await on.inject(f);
      on.source_busy += on.clock.now() - start;
    }
    co_return 0;
  }
  [[nodiscard]] int fibers() const { return static_cast<int>(done_.size()); }
  std::vector<char> done_;
  ns length_, interval_;
  int ended_ = 0;
};

// Each connection has one request under way: it computes, and its next one comes a round trip later.
class connections : public workload {
 public:
  connections(int number, int requests, ns length, ns round_trip)
      : under_way_(static_cast<std::size_t>(number), 1),
        requests_(requests),
        length_(length),
        round_trip_(round_trip) {}
  void begin(runtime& on) override {
    for (fiber f = 0; f < static_cast<fiber>(under_way_.size()); ++f)
      in_flight_.push_back({f * 100, f});  // not all at the same time
    on.clock.start(network(on));
  }
  process run(runtime& on, worker& here, fiber which) override {
    right_ = right_ && std::exchange(under_way_[static_cast<std::size_t>(which)], 0) == 1;
    co_await on.compute(here, length_);
    under_way_[static_cast<std::size_t>(which)] = 1;
    if (++served_ == requests_) on.finish();
    in_flight_.push_back({on.clock.now() + round_trip_, which});
    if (idle_) on.clock.schedule(std::exchange(idle_, {}), 0);
    co_return 0;
  }
  [[nodiscard]] bool right() const { return right_ && served_ == requests_; }

 private:
  struct message {
    ns at;
    fiber to;
  };
  process network(runtime& on) {
    for (;;) {
      if (in_flight_.empty()) co_await leave_handle_in{idle_};
      const message next = in_flight_.front();
      in_flight_.pop_front();
      co_await on.clock.delay(next.at - on.clock.now());
      on.event(next.to);
    }
  }
  std::vector<char> under_way_;  // its request has arrived or will arrive, and no fiber serves it
  bool right_ = true;
  int requests_;
  ns length_, round_trip_;
  std::deque<message> in_flight_;  // in the order of their times
  std::coroutine_handle<> idle_;
  int served_ = 0;
};

}  // namespace simulation
