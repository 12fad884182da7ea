// The allowed actions of a std::stop_callback on the token of a fiber, a group, or a source of the program's own.

#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using testing::KilledBySignal;

class StopCallback : public WorkersTest {};
ULEXITE_TEST_WORKERS(StopCallback);

// Requests a stop in the three ways, of fibers for which `callback` is called then. In a fiber, or on a plain thread.
template <class F>
void ask_a_fiber(runtime& rt, F callback) {
  auto handle = rt.spawn([] { wait_for_ever(); });
  const std::stop_callback registered(handle.get_stop_token(), callback);
  handle.request_stop();
  EXPECT_THROW(handle.get(), operation_cancelled);
}
template <class F>
void ask_a_group(runtime&, F callback) {
  task_group group;
  const std::stop_callback registered(group.get_stop_token(), callback);
  group.request_stop();
}
template <class F>
void ask_a_runtime(runtime& rt, F callback) {
  auto handle = rt.spawn([] { wait_for_ever(); });
  const std::stop_callback registered(handle.get_stop_token(), callback);
  rt.request_stop();
  EXPECT_THROW(handle.get(), operation_cancelled);
}
template <class F>
void ask_an_own_source(runtime&, F callback) {
  std::stop_source source;
  const std::stop_callback registered(source.get_token(), callback);
  EXPECT_TRUE(request_stop(source));
  EXPECT_FALSE(request_stop(source));
}

TEST_P(StopCallback, MayYieldAndTakeAFreeMutex) {
  int called = 0;
  mutex guard;
  const auto callback = [&] {
    const std::lock_guard lock(guard);
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    ++called;
  };
  const auto ask = [&] {
    ask_a_fiber(rt(), callback);
    ask_a_group(rt(), callback);
    ask_an_own_source(rt(), callback);
    this_fiber::sleep_for(1us);  // a fiber may wait again afterwards
    ask_a_runtime(rt(), callback);
  };
  run(ask);
  ask();
  EXPECT_EQ(called, 8);
}

TEST_P(StopCallback, MayWaitOnAPlainThread) {
  mutex guard;
  int called = 0;
  const auto ask = [&](auto how) {
    std::atomic<bool> held{false}, asked{false};
    auto holder = rt().spawn([&] {
      const shield uninterrupted;
      const std::lock_guard lock(guard);
      held = true;
      wait_until([&] { return asked.load(); });
      for (int i = 0; i < 20; ++i) this_fiber::yield();
    });
    wait_until([&] { return held.load(); });
    how([&] {
      asked = true;
      const std::lock_guard lock(guard);
      this_fiber::sleep_for(1us);
      ++called;
    });
    holder.get();
  };
  ask([&](auto callback) { ask_a_fiber(rt(), callback); });
  ask([&](auto callback) { ask_a_group(rt(), callback); });
  ask([&](auto callback) { ask_a_runtime(rt(), callback); });
  ask([&](auto callback) { ask_an_own_source(rt(), callback); });
  EXPECT_EQ(called, 4);
}

// Those who request a stop may have been asked to stop themselves, or be late. An exception in a callback would end the
// process.
class AStoppedRequester : public WorkersTest {
 protected:
  void log_it() {
    for (int i = 0; i < 300; ++i) EXPECT_EQ(log_.try_send(i), channel_status::ok);
    ++called_;
  }
  std::stop_callback<std::function<void()>> at_a_stop(std::stop_token token) {
    return std::stop_callback<std::function<void()>>(std::move(token), [this] { log_it(); });
  }
  void wait_with_a_callback() {
    const auto callback = at_a_stop(this_fiber::get_stop_token());
    ++waiting_;
    wait_for_ever();
  }

  channel<int> log_{unbounded};
  std::atomic<int> waiting_{0}, called_{0};
};
ULEXITE_TEST_WORKERS(AStoppedRequester);

TEST_P(AStoppedRequester, IsAWinnerOfWhenAny) {
  run([&] { when_any([&] { wait_with_a_callback(); }, [&] { wait_until([&] { return waiting_ == 1; }); }); });
  EXPECT_EQ(called_, 1);
}

TEST_P(AStoppedRequester, WaitsForItsGroup) {
  run([&] {
    auto owner = spawn([&] {
      task_group group;
      for (int i = 0; i < 3; ++i) group.spawn([&] { wait_with_a_callback(); });
      group.wait();
    });
    wait_until([&] { return waiting_ == 3; });
    owner.request_stop();
    EXPECT_THROW(owner.get(), operation_cancelled);
  });
  EXPECT_EQ(called_, 3);
}

TEST_P(AStoppedRequester, MeetsItsDeadline) {
  run([&] {
    const deadline_scope limit(1ms);
    task_group group;
    const auto callback = at_a_stop(group.get_stop_token());
    group.spawn([] { wait_for_ever(); });
    EXPECT_THROW(group.wait(), deadline_exceeded);
    EXPECT_THROW(this_fiber::check(), deadline_exceeded) << "the deadline holds again after the callbacks";
  });
  EXPECT_EQ(called_, 1);
}

TEST_P(AStoppedRequester, IsAChildOfTheGroupThatItStops) {
  run([&] {
    task_group group;
    const auto callback = at_a_stop(group.get_stop_token());
    group.spawn([&] {
      group.request_stop();
      EXPECT_THROW(this_fiber::check(), operation_cancelled) << "the request holds again after the callbacks";
    });
    group.wait();
  });
  EXPECT_EQ(called_, 1);
}

TEST_P(AStoppedRequester, StopsItsRuntime) {
  run([&] {
    auto other = spawn([&] { wait_with_a_callback(); });
    wait_until([&] { return waiting_ == 1; });
    rt().request_stop();
    other.join();
  });
  EXPECT_EQ(called_, 1);
}

// A destructor of a callback returns when the call is over. It knows the requester by its thread. So the callback must
// not leave the thread, although the program's own source knows nothing of fibers.
TEST_P(StopCallback, OfAnOwnSourceIsNotLeftByATrySend) {
  run([] {
    for (int before = 0; before < 300; ++before) {
      std::stop_source source;
      channel<int> log(unbounded), full;
      std::atomic<bool> entered{false}, running{false};
      auto owner = spawn([&] {
        {
          const std::stop_callback callback(source.get_token(), [&] {
            running = entered = true;
            for (int i = 0; i < 2; ++i) {
              EXPECT_EQ(log.try_send(i), channel_status::ok);
              EXPECT_EQ(full.try_send(i), channel_status::would_block);
            }
            running = false;
          });
          wait_until([&] { return entered.load(); });
        }
        return running.load();
      });
      auto stopper = spawn([&] {
        for (int i = 0; i < before; ++i) EXPECT_EQ(log.try_send(i), channel_status::ok);
        source.request_stop();
      });
      EXPECT_FALSE(owner.get()) << "the callback was destroyed while it ran, after " << before;
      stopper.join();
    }
  });
}

// A callback that ends its own registration must be on the requester's thread, otherwise it waits for itself.
TEST_P(StopCallback, OfAnOwnSourceMayEndItselfAfterManyTries) {
  run([] {
    std::atomic<bool> over{false};
    task_group busy;
    for (int i = 0; i < 4; ++i) busy.spawn([&] { wait_until([&] { return over.load(); }); });
    for (int round = 0; round < 20; ++round) {
      std::stop_source source;
      channel<int> log(unbounded);
      std::optional<std::stop_callback<std::function<void()>>> self;
      self.emplace(source.get_token(), [&] { self.reset(); });
      const std::stop_callback first(source.get_token(), [&] {
        for (int i = 0; i < 300; ++i) EXPECT_EQ(log.try_send(i), channel_status::ok);
      });
      spawn([&] { source.request_stop(); }).join();
      EXPECT_FALSE(self);
    }
    over = true;
    busy.wait();
  });
}

// `ask` in a fiber, with a callback that waits.
template <class Ask>
void ask_and_wait(Ask ask, bool for_mutex) {
  const watchdog dog("a stop callback that waits");
  runtime rt({.threads = 2});
  rt.run([&] {
    mutex guard;
    std::atomic<bool> held{false};
    spawn([&] {
      const shield uninterrupted;
      const std::lock_guard lock(guard);
      held = true;
      wait_for_ever();
    }).detach();
    wait_until([&] { return held.load(); });
    const shield uninterrupted;  // the runtime asks the main fiber too
    ask(rt, [&] {
      if (for_mutex) {
        const std::lock_guard lock(guard);
      } else {
        this_fiber::sleep_for(1h);  // so long that it cannot be over before it begins
      }
    });
  });
}

TEST(StopCallbackDeathTest, AWaitInAFiberIsAReportedBug) {
  use_threadsafe_death_tests();
  const char* const line = "ulexite: BUG: a job or a stop callback waits for something";
  for (const bool mutex : {true, false}) {
    const auto ask = [mutex](auto how) { ask_and_wait(how, mutex); };
    EXPECT_EXIT(ask([](auto& rt, auto callback) { ask_a_fiber(rt, callback); }), KilledBySignal(SIGABRT), line);
    EXPECT_EXIT(ask([](auto& rt, auto callback) { ask_a_group(rt, callback); }), KilledBySignal(SIGABRT), line);
    EXPECT_EXIT(ask([](auto& rt, auto callback) { ask_a_runtime(rt, callback); }), KilledBySignal(SIGABRT), line);
    EXPECT_EXIT(ask([](auto& rt, auto callback) { ask_an_own_source(rt, callback); }), KilledBySignal(SIGABRT), line);
  }
}

}  // namespace
