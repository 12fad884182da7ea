#pragma once

// A discrete-event engine: simulated activities are coroutines that wait for simulated time. Deterministic: actions of
// the same time run in the order in which they were scheduled.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <queue>
#include <utility>
#include <vector>

namespace simulation {

using ns = std::int64_t;

// The next coroutine that the engine resumes. A process that awaits another returns to the engine instead of resuming
// it itself, so the machine's stack does not grow.
inline std::coroutine_handle<> continuing;

// An activity. Awaited, it runs as a part of its awaiter and results in an int. Given to start(), it runs alone.
class [[nodiscard]] process {
 public:
  struct promise_type {
    int result = 0;
    std::coroutine_handle<> caller;

    struct last_step {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        continuing = self.promise().caller;  // none: it was started by itself, and the engine destroys it
      }
      void await_resume() noexcept {}
    };

    process get_return_object() { return process(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    last_step final_suspend() noexcept { return {}; }
    void return_value(int value) noexcept { result = value; }
    void unhandled_exception() noexcept { std::terminate(); }
  };

  process(process&& other) noexcept : self_(std::exchange(other.self_, {})) {}
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  process& operator=(process&&) = delete;
  ~process() {
    if (self_) self_.destroy();
  }

  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) noexcept {
    self_.promise().caller = caller;
    continuing = self_;
  }
  int await_resume() noexcept { return self_.promise().result; }

  [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return self_; }

 private:
  explicit process(std::coroutine_handle<promise_type> self) noexcept : self_(self) {}
  std::coroutine_handle<promise_type> self_;
};

class engine {
 public:
  [[nodiscard]] ns now() const noexcept { return now_; }

  void schedule(std::coroutine_handle<> who, ns delay) { due_.push({now_ + delay, order_++, who}); }
  void start(process activity) {
    schedule(activity.handle(), 0);
    started_.push_back(std::move(activity));
  }
  void stop() noexcept { stopped_ = true; }

  // co_await delay(t): goes on t later. Directly, if nothing else happens before.
  auto delay(ns time) {
    struct awaiter {
      engine& in;
      ns time;
      bool await_ready() {
        if (time <= 0) return true;
        if (in.stopped_ || (!in.due_.empty() && in.due_.top().at <= in.now_ + time)) return false;
        in.now_ += time;
        return true;
      }
      void await_suspend(std::coroutine_handle<> who) { in.schedule(who, time); }
      void await_resume() noexcept {}
    };
    return awaiter{*this, time};
  }

  // Until stop(), or until nothing is scheduled.
  void run() {
    while (!stopped_ && !due_.empty()) {
      now_ = due_.top().at;
      std::coroutine_handle<> next = due_.top().who;
      due_.pop();
      while (next && !stopped_) {
        continuing = {};
        next.resume();
        next = continuing;
      }
    }
  }

 private:
  struct event {
    ns at;
    std::uint64_t order;
    std::coroutine_handle<> who;
    bool operator<(const event& other) const noexcept {
      return at != other.at ? at > other.at : order > other.order;  // the earliest is the top of the heap
    }
  };

  ns now_ = 0;
  std::uint64_t order_ = 0;
  bool stopped_ = false;
  std::priority_queue<event> due_;
  std::vector<process> started_;
};

// co_await leave_handle_in{x}: until other code schedules the handle in x.
struct leave_handle_in {
  std::coroutine_handle<>& where;
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) noexcept { where = who; }
  void await_resume() noexcept {}
};

}  // namespace simulation
