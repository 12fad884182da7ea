#pragma once

// The second half, see relacy_library.hpp: std::atomic inside the library, and fibers that wait. A fiber is a thread of
// Relacy's that blocks while it is suspended. If no thread resumes it, that is a deadlock, which Relacy reports.
//
// Shipped: spin lock, wait word, wait queue, and what they include. Defined here: the functions of suspend.cpp and
// current.cpp that these files use, step by step. The clock and the kernel are replaced by chance.
//
// EDIT: the links of a list, which a lock guards
//   base/intrusive_list.hpp: list_hook* before = nullptr; => model::checked<list_hook*> before = nullptr;
//   base/intrusive_list.hpp: list_hook* after = nullptr; => model::checked<list_hook*> after = nullptr;
// EDIT: the record of the calling fiber, which Relacy's threads do not have in the register that the text reads
//   runtime/wait/current.hpp: current_execution* address;\n => return this_thread_execution();\n  current_execution* address;\n

namespace ulexite {
namespace std {
using namespace ::std;
template <class T = int>
using atomic = model::library_atomic<T, class_orders>;
}  // namespace std
namespace detail::std {
using namespace ::std;
template <class T = int>
using atomic = model::library_atomic<T, detail_orders>;

inline void atomic_signal_fence(memory_order) {}
inline void atomic_thread_fence(memory_order) { rl::atomic_thread_fence(rl::mo_seq_cst, $); }
namespace this_thread {
inline void yield() { rl::yield(1, $); }
}  // namespace this_thread
}  // namespace detail::std
}  // namespace ulexite

#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

namespace model {

using ulexite::detail::claim_result;
using ulexite::detail::spin_lock;
using ulexite::detail::wake_reason;

// A node for a mutant that leaves it in a queue: destroyed with its frame, but its memory is not used for other things,
// so that Relacy reports the next access.
template <class Node>
struct left_behind {
  Node& node;

  template <class... Values>
  explicit left_behind(ulexite::detail::agent& waiter, const Values&... values)
      : node(*::new(std::malloc(sizeof(Node))) Node(waiter, values...)) {}
  ~left_behind() { std::destroy_at(&node); }
};

// For a mutant that few schedules break: lets other threads run first.
inline void pause_by_chance() {
  for (unsigned turns = rl::rand(20); turns > 0; --turns) rl::yield(1, $);
}

// The clock: by chance more than a mutex's patience passes. A model may have its own clock.
inline std::int64_t time_by_chance() { return 1'000'000'000 + 2'000'000 * std::int64_t(rl::rand(2)); }
inline std::int64_t (*clock)() = time_by_chance;

// Some workers, by chance up to three, for texts that tell them apart. A fiber has one of them while it runs, and after
// a wait another, or the same. The next to have a worker sees what the last one wrote.
class workers {
 public:
  using name = ulexite::detail::scheduler*;

  name take() {
    unsigned which = rl::rand(count_);
    while (taken_[which].exchange(1, rl::mo_acquire) == 1) {
      which = (which + 1) % count_;
      rl::yield(1, $);
    }
    return reinterpret_cast<name>(&taken_[which]);
  }
  static void give_back(name worker) {
    reinterpret_cast<relacy_atomic<int, orders, false>*>(worker)->store(0, rl::mo_release);
  }

 private:
  const unsigned count_ = 1 + rl::rand(3);
  relacy_atomic<int, orders, false> taken_[3];
};

// A thread of Relacy's becomes a fiber by `begin`; without workers, one that is on none, as a plain thread.
class fiber : public ulexite::detail::agent {
 public:
  fiber() { context_($) = 0; }

  void begin(workers* on = nullptr) {
    of_thread[rl::thread_index()] = this;
    on_ = on;
    here.agent = this;
    come();
  }
  // By chance when others had time to wait, and to leave their workers.
  void begin_late(workers* on) {
    if (rl::rand(2)) pause_by_chance();
    begin(on);
  }
  static fiber& current() { return *of_thread[rl::thread_index()]; }

  ulexite::detail::current_execution here;

  // The timer's thread: ends the wait with a time limit that is under way, or the next one; none after finish.
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
    leave();
    std::unique_lock lock(timer_mutex_);
    finished_ = true;
    timer_changed_.notify_all();
  }
  // Any thread, once.
  void stop() {
    RL_ASSERT(word.request_stop());
    rl::atomic_thread_fence(rl::mo_seq_cst, $);
    if (word.cancel()) resume();
  }
  // By the claimer that won, once.
  virtual void resume() {
    RL_ASSERT(int(context_($)) == 1);
    std::unique_lock lock(mutex_);
    RL_ASSERT(!runnable_);
    runnable_ = true;
    changed_.notify_one();
  }
  // The fiber itself.
  wake_reason suspend(spin_lock* held, bool prepared, bool cancellable, bool timed) {
    cancellable = cancellable && !shielded;
    if (timed) {
      if (!prepared) word.prepare();
      prepared = true;
      set_timer(true);
    }
    context_($) = 1;
    const bool waits = word.commit(prepared, cancellable);
    if (held) held->unlock();
    if (waits) {
      leave();
      block();
      come();
    }
    context_($) = 0;
    if (timed) set_timer(false);
    return word.reason();
  }

 protected:
  void set_timer(bool armed) {
    std::unique_lock lock(timer_mutex_);
    armed_ = armed;
    timer_changed_.notify_all();
  }

 private:
  static inline fiber* of_thread[16] = {};

  void come() {
    if (on_) here.scheduler = on_->take();
  }
  void leave() {
    if (here.scheduler) workers::give_back(std::exchange(here.scheduler, nullptr));
  }
  void block() {
    std::unique_lock lock(mutex_);
    while (!runnable_) changed_.wait(lock);
    runnable_ = false;
  }

  rl::var<int> context_;  // 1 while it is saved
  relacy_mutex mutex_, timer_mutex_;
  relacy_condition_variable changed_, timer_changed_;
  bool runnable_ = false, armed_ = false, finished_ = false;
  workers* on_ = nullptr;
};

// The variable that a mutex guards.
struct guarded {
  rl::var<int> count;
  int inside = 0, entries = 0;

  guarded() { count($) = 0; }
  void use() {
    RL_ASSERT(++inside == 1);
    count($) = int(count($)) + 1;
    ++entries;
    --inside;
  }
};

}  // namespace model

namespace ulexite {

// Without text, because Relacy replaces operator new in the program but not in the standard library.
class silent_category : public std::error_category {
 public:
  const char* name() const noexcept override { return ""; }
  std::string message(int) const override { return {}; }
};
const std::error_category& error_category() noexcept {
  static const silent_category category;
  return category;
}

namespace detail {

// Both are full fences.
bool fences_are_asymmetric = false;
void heavy_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, $); }

void panic(const char*, ...) noexcept {
  RL_ASSERT(false);
  std::abort();
}
void warn(const char*, ...) noexcept {}
#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS
void perturb() noexcept {}
#endif
void yield_point::pass() noexcept {}
controller* this_controller() noexcept { return nullptr; }
std::int64_t controlled_clock_ns() noexcept { return model::clock(); }
inline const bool clock_is_the_models = [] {
  controlled_somewhere.store(true, ::std::memory_order_relaxed);
  return true;
}();

current_execution& this_thread_execution() noexcept { return model::fiber::current().here; }
agent& this_agent() noexcept { return model::fiber::current(); }
caller this_caller() noexcept { return {&this_agent(), this_thread_execution().scheduler}; }
// With the chances of up to four choices in a row.
std::uint32_t random_fraction(std::uint32_t) noexcept {
  return static_cast<std::uint32_t>(((2 * std::uint64_t(rl::rand(24)) + 1) << 32) / 48);
}
bool runs_on_a_worker(const agent*) noexcept { return rl::rand(2); }
void yield_if_budget_spent(agent&) noexcept {}

std::error_code stop_cause(const agent& self) noexcept {
  return self.word.stop_requested() && !self.shielded ? make_error_code(errc::cancelled) : std::error_code();
}
void throw_cancelled() { throw operation_cancelled(); }
void throw_stop_cause(const agent& self) {
  if (stop_cause(self)) throw_cancelled();
}
void throw_wait_forbidden(agent&, wait_kind) { RL_ASSERT(false); }

void resume(agent& agent) noexcept { static_cast<model::fiber&>(agent).resume(); }
void resume(agent& agent, scheduler*) noexcept { resume(agent); }
void resume_holder(agent& agent, scheduler*) noexcept { resume(agent); }
wake_reason suspend_and_unlock(agent& self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept {
  return static_cast<model::fiber&>(self).suspend(&held, false, mode.is_cancellable(), deadline != no_deadline);
}
wake_reason suspend_and_unlock(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept {
  return suspend_and_unlock(*self.agent, held, mode, deadline);
}
wake_reason suspend_prepared(agent& self, wait_mode mode, std::int64_t deadline) noexcept {
  return static_cast<model::fiber&>(self).suspend(nullptr, true, mode.is_cancellable(), deadline != no_deadline);
}

}  // namespace detail
}  // namespace ulexite
