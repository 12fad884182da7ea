#pragma once

// The waits of coroutines: see relacy_library.hpp. A model includes this header after "relacy_agents.hpp".
//
// Shipped: the operations, the coroutines, the fibers that run them, and the publication of their waits. Defined here:
// the worker, and what suspend.cpp does for the wait of a coroutine. A worker is a thread of Relacy's. Whoever ends the
// wait of a coroutine puts it into a queue, and any worker continues it. So the thread that has published a wait and
// the thread that continues after it may be two, and Relacy sees what the first still touches.
//
// EDIT: a fiber and its agent, which are not neighbours in memory here
//   runtime/wait/agent.hpp: task& fiber() noexcept { return *reinterpret_cast<task*>(this + 1); } => task* task_of_model = nullptr;\n  task& fiber() noexcept { return *task_of_model; }
//   runtime/task/task.hpp: detail::agent& agent() noexcept { return *(reinterpret_cast<detail::agent*>(this) - 1); } => detail::agent* agent_of_model = nullptr;\n  detail::agent& agent() noexcept { return *agent_of_model; }
// EDIT: what the commit of a wait publishes
//   runtime/wait/stackless_wait.hpp: std::coroutine_handle<> continues; => model::checked_handle continues;
//   runtime/wait/stackless_wait.hpp: spin_lock* held_ = nullptr; => model::checked<spin_lock*> held_ = nullptr;
//   runtime/wait/stackless_wait.hpp: bool prepared_ = false; => model::checked<bool> prepared_ = false;
//   runtime/wait/stackless_wait.hpp: bool cancellable_ = false; => model::checked<bool> cancellable_ = false;
//   coroutine/promise.hpp: stage at = stage::unstarted; => model::checked<stage> at = stage::unstarted;

namespace model {

// A handle as a checked variable.
class checked_handle {
 public:
  checked_handle& operator=(std::coroutine_handle<> handle) {
    address_ = handle.address();
    return *this;
  }
  operator std::coroutine_handle<>() const {
    void* const address = address_;
    RL_ASSERT(address);
    return std::coroutine_handle<>::from_address(address);
  }

 private:
  checked<void*> address_ = nullptr;
};

}  // namespace model

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/coroutine/task.hpp>

namespace ulexite::detail {

// Its worker's step when a coroutine has returned to the bottom of the stack.
class scheduler {
 public:
  static void leave_stack(task& self, stackless_wait& wait) noexcept;
};

}  // namespace ulexite::detail

namespace model {

using ulexite::detail::stackless_wait;

class coroutine;

// The coroutines that may run, and those that wait.
class coroutines {
 public:
  void add(coroutine& next) {
    std::unique_lock lock(mutex_);
    RL_ASSERT(size_ < std::size(runnable_));
    runnable_[size_++] = &next;
    changed_.notify_one();
  }
  void begin_one() { ++left_; }  // before the threads
  void end_one() {
    std::unique_lock lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  // A worker: runs coroutines until all have ended.
  void work();

 private:
  // By chance any of them. Null: all have ended.
  coroutine* next() {
    std::unique_lock lock(mutex_);
    while (size_ == 0 && left_ > 0) changed_.wait(lock);
    if (size_ == 0) return nullptr;
    std::swap(runnable_[rl::rand(size_)], runnable_[size_ - 1]);
    return runnable_[--size_];
  }

  relacy_mutex mutex_;
  relacy_condition_variable changed_;
  coroutine* runnable_[4] = {};
  unsigned size_ = 0, left_ = 0;
};

// A fiber that runs a coroutine.
class coroutine : public fiber {
 public:
  // Before the threads: `body` returns a task<>, which does not throw.
  template <class Body>
  void start(coroutines& in, workers& on, Body body) {
    using made_type = ulexite::detail::closure_task<ulexite::task<>, Body>;
    static_assert(sizeof(made_type) <= sizeof room_);
    auto* const made = ::new (static_cast<void*>(room_)) made_type(std::move(body));
    made->agent_of_model = this;
    task_of_model = made;
    in_ = &in;
    on_ = &on;
    in.begin_one();
    in.add(*this);
  }
  void resume() override { in_->add(*this); }

  // One run on the calling worker.
  void run() {
    begin(on_);
    RL_ASSERT(fiber_of_model().state.start());
    static_cast<void>(fiber_of_model().run_here());
  }
  void arm() { set_timer(true); }
  void disarm() { set_timer(false); }
  // The end of its fiber.
  void end() {
    coroutines& in = *in_;
    fiber::finish();
    in.end_one();
  }

 private:
  ulexite::detail::task& fiber_of_model() { return *task_of_model; }

  alignas(16) std::byte room_[512];
  coroutines* in_ = nullptr;
  workers* on_ = nullptr;
};

inline void coroutines::work() {
  while (coroutine* const each = next()) each->run();
}

}  // namespace model

namespace ulexite::detail {

scheduler* this_scheduler() noexcept { return nullptr; }  // of a result that nothing uses

void scheduler::leave_stack(task& self, stackless_wait& wait) noexcept {
  scheduler* const worker = this_thread_execution().scheduler;
  agent& who = self.agent();
  if (!wait.publish(self.state, who.word)) resume(who);
  model::workers::give_back(worker);
}
void leave_stack(task& self, stackless_wait& wait) noexcept { scheduler::leave_stack(self, wait); }

struct stackless_wait::timer {};
void stackless_wait::drop_timer() noexcept { delete timer_; }
void stackless_wait::provide_timer() {
  if (!timer_) timer_ = new timer();
}
void stackless_wait::arm(agent& self, ::std::int64_t) noexcept {
  if (!prepared_) self.word.prepare();
  prepared_ = true;
  static_cast<model::coroutine&>(self).arm();
}
wake_reason stackless_wait::end_timed(agent& self) noexcept {
  static_cast<model::coroutine&>(self).disarm();
  return self.word.reason();
}
// By chance others run first.
bool stackless_wait::goes_on(agent&) noexcept {
  yields_ = rl::rand(4) == 0;
  return !yields_;
}
void stackless_wait::keep_exception(agent& self) noexcept { self.fiber().failure = ::std::current_exception(); }
void stackless_wait::rethrow_kept() {
  ::std::rethrow_exception(::std::exchange(this_agent().fiber().failure, nullptr));
}

task::~task() = default;
void task::clear_locals_slow() noexcept {}
void task::keep_failure() noexcept { RL_ASSERT(false); }
scheduler* task::finish() noexcept {
  auto& of = static_cast<model::coroutine&>(agent());
  this->~task();
  of.end();
  return nullptr;
}

}  // namespace ulexite::detail
