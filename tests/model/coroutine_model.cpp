// The waits of coroutines under Relacy: the text that ships, with the channel's, the mutex's and the condition
// variable's. A coroutine continues once after each wait, on any worker, and sees what it and its partner wrote before.
// Nothing touches it or its wait once others may continue it. The partners' side of the protocols is that of
// channel_model.cpp, mutex_model.cpp and wait_word_model.cpp.
//
// MUTANT: published_in_await   the wait is published before the coroutine has returned to the bottom of its stack
//   coroutine/operation.hpp: of.continues = waiting;\n    in.fiber->wait_stackless(of); => in.fiber->wait_stackless(of);\n    leave_stack(*in.fiber, of);\n    of.continues = waiting;
// MUTANT: lock_read_late       the lock to release is read from a wait that may be over
//   runtime/wait/stackless_wait.hpp: if (held) held->unlock(); => model::pause_by_chance();\n    if (!yields && held_) held_->unlock();
// MUTANT: fresh_late           the fiber is made fresh after the commit, when another may have begun to run it
//   runtime/wait/stackless_wait.hpp: state.unstacked();\n =>
//   runtime/wait/stackless_wait.hpp: if (held) held->unlock(); => model::pause_by_chance();\n    state.unstacked();\n    if (held) held->unlock();
// MUTANT: unlocked_early       the lock of the queue is released before the commit: a claimer finds no wait
//   runtime/wait/stackless_wait.hpp: state.unstacked();\n => if (held) held->unlock();\n    state.unstacked();\n
//   runtime/wait/stackless_wait.hpp: if (held) held->unlock();\n    return waits; => return waits;
// MUTANT: early_claim_lost     a coroutine whose wait was claimed before the commit is not made runnable
//   runtime/wait/stackless_wait.hpp: return waits; => return true;
// MUTANT: claim_overwritten    the commit does not know that the wait was prepared, and overwrites an early claim
//   runtime/wait/stackless_wait.hpp: prepared_ = held == nullptr; => prepared_ = false;
// MUTANT: left_without_lock    an operation that was stopped leaves the queue without the lock
//   coroutine/case_operation.hpp: reason == wake_reason::notified && !timed) => true)
// MUTANT: turn_not_taken       a coroutine that was woken does not take the mutex
//   coroutine/locks.hpp: return taken_ || take_turn(self, queued_); => return true;
// MUTANT: notification_lost    a wait that was notified and has timed out forgets the notification
//   coroutine/locks.hpp: if (node_.notified) reason_ = wake_reason::notified;\n =>
//
// An operation of another library (operation.hpp A):
// MUTANT: a_not_acquired       the thread that completes it does not see that the fiber has prepared its wait
//   coroutine/operation.hpp: stage_.exchange(stage::complete, std::memory_order_acq_rel) => stage_.exchange(stage::complete, std::memory_order_release)
// MUTANT: a_not_released       the fiber does not see the result
//   coroutine/operation.hpp: stage_.exchange(stage::complete, std::memory_order_acq_rel) => stage_.exchange(stage::complete, std::memory_order_acquire)
// MUTANT: a_not_prepared       it finds no wait to claim
//   coroutine/operation.hpp: self.word.prepare();\n =>
//   coroutine/operation.hpp: begin(self, nullptr, no_deadline); => self.word.prepare();\n    begin(self, nullptr, no_deadline);

#include "relacy_library.hpp"

enum class mutation {
  none,
  published_in_await,
  lock_read_late,
  fresh_late,
  unlocked_early,
  early_claim_lost,
  claim_overwritten,
  left_without_lock,
  turn_not_taken,
  notification_lost,
  a_not_acquired,
  a_not_released,
  a_not_prepared
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders;

#include "relacy_agents.hpp"
#include "relacy_channels.hpp"
#include "relacy_coroutines.hpp"

#include <ulexite/coroutine/channels.hpp>
#include <ulexite/coroutine/locks.hpp>
#include <ulexite/sync/condition_variable.cpp>
#include <ulexite/sync/event.cpp>
#include <ulexite/sync/mutex.cpp>
#include <ulexite/sync/select/select_case.cpp>

std::string ulexite::detail::name_and_address(const void*) { return {}; }  // for errors, which do not happen
const char ULEXITE_BUILT_AS = 0;

using model::parcel, model::status;
using ulexite::task;

// A close between a sender, which may have a time limit or be asked to stop, and a receiver. The sender is a coroutine,
// and the receiver is one by chance. The buffer may be full.
struct close_meets_both : rl::test_suite<close_meets_both, 5> {
  static constexpr int number = 5, before_it = 9;

  model::workers workers;
  model::coroutines all;
  model::coroutine sender, receiver;
  model::fiber closer, receiving;
  std::optional<ulexite::channel<parcel>> at;
  parcel sent{number}, received;
  status how[2] = {};
  bool stops = false, is_timed = false, is_filled = false, of_one_kind = false;

  void before() {
    const unsigned capacity = rl::rand(2);
    is_filled = capacity == 1 && rl::rand(2);
    stops = rl::rand(2);
    is_timed = !stops && rl::rand(2);
    of_one_kind = rl::rand(2);
    at.emplace(capacity);
    model::channel_before first(workers);
    first.bias(*at);
    parcel filling(before_it);
    if (is_filled) RL_ASSERT(at->try_send(filling) == ulexite::channel_status::ok);
    sender.start(all, workers, [this] { return send(); });
    if (of_one_kind) receiver.start(all, workers, [this] { return receive(); });
  }
  task<> send() try {
    how[0] = model::status_of(co_await ulexite::co_send_for(*at, sent, model::limit(is_timed)));
  } catch (const ulexite::operation_cancelled&) {
    how[0] = status::cancelled;
  }
  task<> receive() { how[1] = model::status_of(co_await ulexite::co_receive_for(*at, received, model::limit(false))); }

  void thread(unsigned id) {
    switch (id) {
      case 0:
      case 1: return all.work();
      case 2:
        closer.begin_late(&workers);
        RL_ASSERT(at->close());
        return closer.finish();
      case 3:
        if (of_one_kind) return;
        receiving.begin_late(&workers);
        how[1] = model::receive(*at, received);
        return receiving.finish();
      default:
        if (stops) sender.stop();
        if (is_timed) sender.fire();
    }
  }
  // What was sent before the close is received, even after it.
  void after() {
    const bool passed = how[0] == status::ok;
    RL_ASSERT(how[1] == (passed || is_filled ? status::ok : status::closed));
    RL_ASSERT(how[0] != status::timeout || is_timed);
    RL_ASSERT(how[0] != status::cancelled || stops);
    RL_ASSERT(sent.number() == (passed ? 0 : number));
    closer.begin();
    for (const int expected : {is_filled ? before_it : 0, passed ? number : 0}) {
      if (expected == 0) continue;
      if (received.number() == 0) RL_ASSERT(at->try_receive(received) == ulexite::channel_status::ok);
      RL_ASSERT(received.number() == expected);
      parcel over(std::move(received));
    }
    RL_ASSERT(received.number() == 0 && at->try_receive(received) == ulexite::channel_status::closed);
  }
};

// One sends numbers and closes, another receives them, a fiber may take one of them. The waits are in a coroutine that
// another awaits.
struct values_in_order : rl::test_suite<values_in_order, 3> {
  static constexpr int count = 3;

  model::workers workers;
  model::coroutines all;
  model::coroutine sender, receiver;
  model::fiber one;
  std::optional<ulexite::channel<parcel>> at;
  int received = 0, taken = 0;

  void before() {
    at.emplace(rl::rand(3));
    model::channel_before(workers).bias(*at);
    sender.start(all, workers, [this] { return send(); });
    receiver.start(all, workers, [this] { return receive(); });
  }
  task<> send_one(int number) { co_await ulexite::co_send(*at, parcel(number)); }
  task<> send() {
    for (int number = 1; number <= count; ++number) co_await send_one(number);
    RL_ASSERT(at->close());
  }
  task<int> receive_one() {
    const auto value = co_await ulexite::co_receive(*at);
    co_return value ? value->number() : 0;
  }
  task<> receive() {
    for (int last = 0, next = 0; (next = co_await receive_one()) != 0; last = next) {
      RL_ASSERT(next > last);
      ++received;
    }
  }
  void thread(unsigned id) {
    if (id < 2) return all.work();
    one.begin_late(&workers);
    parcel value;
    if (at->try_receive(value) == ulexite::channel_status::ok) taken = 1;
    one.finish();
  }
  void after() { RL_ASSERT(received + taken == count); }
};

// Two coroutines and a fiber lock. The last of them destroys the mutex.
struct one_owner_at_a_time : rl::test_suite<one_owner_at_a_time, 3> {
  model::workers workers;
  model::coroutines all;
  model::coroutine two[2];
  model::fiber third;
  std::optional<ulexite::mutex> m;
  model::guarded data;
  int left = 0;

  void before() {
    m.emplace();
    for (auto& each : two) each.start(all, workers, [this] { return lock_often(); });
  }
  task<> lock_often() {
    for (int round = 0; round < 2; ++round) {
      const auto lock = co_await ulexite::co_lock(*m);
      data.use();
    }
    leave(co_await ulexite::co_lock(*m));
  }
  void leave(std::unique_lock<ulexite::mutex> lock) {
    data.use();
    const bool last = ++left == 3;
    lock.unlock();
    if (last) m.reset();
  }
  void thread(unsigned id) {
    if (id < 2) return all.work();
    third.begin_late(&workers);
    {
      const std::lock_guard lock(*m);
      data.use();
    }
    leave(std::unique_lock(*m));
    third.finish();
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries && data.entries == 8); }
};

// There is one item for two waiters. One of them has a time limit or will be stopped, and then takes nothing. The
// coroutine that takes the item adds the next one, which is the last.
struct no_notification_is_lost : rl::test_suite<no_notification_is_lost, 4> {
  using locked = std::unique_lock<ulexite::mutex>;

  model::workers workers;
  model::coroutines all;
  model::coroutine takers[2];
  model::fiber bringer;
  ulexite::mutex m;
  ulexite::condition_variable changed;
  model::guarded data;
  rl::var<int> items;
  bool is_timed = false, stops = false, notifies_all = false;
  int taken = 0;

  void before() {
    items($) = 0;
    is_timed = rl::rand(2);
    stops = rl::rand(2);
    notifies_all = rl::rand(2);
    takers[0].start(all, workers, [this] { return take(is_timed || stops); });
    takers[1].start(all, workers, [this] { return take(false); });
  }
  task<bool> is_over(locked& lock) try {
    co_return co_await ulexite::co_wait_for(changed, lock, model::limit(is_timed)) == std::cv_status::timeout;
  } catch (const ulexite::operation_cancelled&) {
    RL_ASSERT(stops);
    co_return true;
  }
  task<> take(bool bounded) {
    auto lock = co_await ulexite::co_lock(m);
    data.use();
    bool over = false;
    while (int(items($)) == 0 && !over) {
      if (bounded) {
        over = co_await is_over(lock);
      } else {
        co_await ulexite::co_wait(changed, lock);
      }
      RL_ASSERT(lock.owns_lock());
      data.use();
    }
    if (over) co_return;
    items($) = int(items($)) - 1;
    if (++taken == 1) bring(std::move(lock));
  }
  void bring(locked lock) {
    data.use();
    items($) = int(items($)) + 1;
    lock.unlock();
    notifies_all ? changed.notify_all() : changed.notify_one();
  }
  void thread(unsigned id) {
    switch (id) {
      case 0:
      case 1: return all.work();
      case 2:
        bringer.begin_late(&workers);
        bring(locked(m));
        return bringer.finish();
      default:
        if (stops) {
          takers[0].stop();
        } else if (is_timed) {
          takers[0].fire();
        }
    }
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries); }
};

// An operation of another library, which any thread completes at any time after its begin.
struct another_library : rl::test_suite<another_library, 3> {
  model::workers workers;
  model::coroutines all;
  model::coroutine waiter;
  model::relacy_mutex mutex;
  model::relacy_condition_variable begun;
  std::coroutine_handle<> waiting;
  rl::var<int> result;
  int got = 0;

  struct operation {
    another_library& in;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
      std::unique_lock lock(in.mutex);
      in.waiting = handle;
      in.begun.notify_one();
    }
    int await_resume() const { return int(in.result($)); }
  };

  void before() {
    waiter.start(all, workers, [this]() -> task<> { got = co_await operation{*this}; });
  }
  void thread(unsigned id) {
    if (id < 2) return all.work();
    {
      std::unique_lock lock(mutex);
      while (!waiting) begun.wait(lock);
    }
    result($) = 7;
    waiting.resume();
  }
  void after() { RL_ASSERT(got == 7); }
};

// An unlock by another than the owner throws in a destructor. That is a finding, unlike all else that terminates.
[[noreturn]] void on_terminate() noexcept {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const ulexite::usage_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(1);
  } catch (...) {
    std::abort();
  }
}

int main() {
  std::set_terminate(on_terminate);
  constexpr unsigned interleavings = 20'000;
  return model::holds<another_library>(interleavings) && model::holds<no_notification_is_lost>(interleavings) &&
                 model::holds<close_meets_both>(interleavings) && model::holds<values_in_order>(interleavings) &&
                 model::holds<one_owner_at_a_time>(interleavings)
             ? 0
             : 1;
}
