// Locks, other waits and groups under chosen schedules, with coroutines and fibers mixed.

#include "library_kinds.hpp"

#include <ulexite.hpp>

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using namespace ulexite::test;
using ux::task;

void mutexes() {
  ux::mutex m;
  ux::shared_mutex s;
  int inside = 0, total = 0, readers = 0, writers = 0;
  const auto work = [&]() -> task<> {
    for (int k = 0; k < 2; ++k) {
      {
        const auto lock = co_await ux::co_lock(m);
        expect(++inside == 1, "two inside");
        if (choose(2)) co_await ux::co_yield_now();
        if (choose(4) == 0) {
          const ux::shield until_the_end;
          co_await ux::co_sleep_for(some_time());
        }
        ++total;
        --inside;
      }
      if (choose(2)) {
        const auto lock = co_await ux::co_lock(s);
        expect(++writers == 1 && readers == 0, "a writer and others");
        co_await ux::co_yield_now();
        --writers;
      } else {
        const auto lock = co_await ux::co_lock_shared(s);
        ++readers;
        expect(writers == 0, "a reader and a writer");
        co_await ux::co_yield_now();
        --readers;
      }
    }
  };
  std::vector<ux::join_handle<>> all;
  for (int i = 0; i < 3; ++i) all.push_back(start(work));
  if (choose(2)) all[choose(3)].request_stop();  // which ends no wait for a lock
  for (auto& each : all) each.join();
  expect(m.try_lock() && s.try_lock(), "free at the end");
  m.unlock();
  s.unlock();
}

TEST(Library, LocksOfBothKinds) { explore_library(mutexes); }

void condition() {  // a bounded buffer with time-outs and stops
  ux::mutex m;
  ux::condition_variable not_empty, not_full;
  std::deque<int> buffer;
  int put = 0, got = 0;
  bool ended = false;
  const auto room = [&] { return buffer.empty() || ended; };
  const auto some = [&] { return !buffer.empty() || ended; };
  const auto wait = [](auto& at, auto& lock, auto condition) -> task<bool> {
    if (choose(2)) co_return co_await co_wait_for(at, lock, some_time(), condition);
    co_await co_wait(at, lock, condition);
    co_return true;
  };
  const auto produce = [&]() -> task<> {
    for (int k = 0; k < 3; ++k) {
      auto lock = co_await ux::co_lock(m);
      const bool came = co_await wait(not_full, lock, room);
      expect(lock.owns_lock(), "holds it");
      if (!came || !buffer.empty()) continue;
      buffer.push_back(k);
      ++put;
      not_empty.notify_one();
    }
  };
  const auto consume = [&]() -> task<> {
    for (;;) {
      auto lock = co_await ux::co_lock(m);
      const bool came = co_await wait(not_empty, lock, some);
      if (!came) continue;
      if (buffer.empty()) co_return;
      buffer.pop_front();
      ++got;
      not_full.notify_one();
    }
  };
  // One that was stopped may have been notified: it passes that on.
  const auto guarded = [&](auto& body) {
    return start([&]() -> task<> {
      const bool whole = co_await to_its_end_or_stop(body());
      if (!whole) not_full.notify_one(), not_empty.notify_one();
    });
  };
  std::vector<ux::join_handle<>> producers, consumers;
  for (int i = 0; i < 2; ++i) {
    producers.push_back(guarded(produce));
    consumers.push_back(guarded(consume));
  }
  if (choose(2)) producers[choose(2)].request_stop();
  if (choose(3) == 0) consumers[0].request_stop();
  for (auto& each : producers) each.get();
  {
    const std::lock_guard lock(m);
    ended = true;
  }
  not_empty.notify_all();
  for (auto& each : consumers) each.get();
  expect(put == got + static_cast<int>(buffer.size()), "put and got");
}

TEST(Library, ConditionVariableOfBothKinds) { explore_library(condition); }

// One waits for ever, one with a limit, and there is one notification. If the second has it, it passes it on.
void notification_at_a_timeout() {
  ux::mutex m;
  ux::condition_variable changed;
  int waiting = 0;
  auto forever = start([&]() -> task<> {
    auto lock = co_await ux::co_lock(m);
    ++waiting;
    co_await co_wait(changed, lock);
  });
  auto limited = start([&]() -> task<> {
    auto lock = co_await ux::co_lock(m);
    ++waiting;
    try {
      const std::cv_status how = co_await co_wait_for(changed, lock, 1ms + some_time());
      if (how == std::cv_status::no_timeout) changed.notify_one();
    } catch (const ux::operation_cancelled&) {
    }
  });
  for (bool both = false; !both; ux::this_fiber::yield()) {
    const std::lock_guard lock(m);
    both = waiting == 2;
  }
  if (choose(2)) ux::this_fiber::sleep_for(1ms);
  if (choose(2)) limited.request_stop();
  changed.notify_one();
  limited.get();
  forever.get();
}

TEST(Library, ANotificationOfBothKindsIsNotLostAtATimeout) { explore_library(notification_at_a_timeout); }

void semaphores() {
  ux::counting_semaphore<> s(2);
  int inside = 0;
  const auto work = [&]() -> task<> {
    for (int k = 0; k < 3; ++k) {
      bool held = true;
      if (choose(2)) {
        held = co_await co_try_acquire_for(s, some_time());
      } else {
        co_await co_acquire(s);
      }
      if (!held) continue;
      expect(++inside <= 2, "too many inside");
      co_await ux::co_yield_now();
      --inside;
      s.release();
    }
  };
  std::vector<ux::join_handle<bool>> all;
  for (int i = 0; i < 4; ++i) all.push_back(start([&] { return to_its_end_or_stop(work()); }));
  for (int i = 0; i < 2; ++i)
    if (choose(2)) all[choose(4)].request_stop();
  for (auto& each : all) each.get();
  expect(s.try_acquire() && s.try_acquire() && !s.try_acquire(), "permits at the end");
}

TEST(Library, SemaphoreOfBothKinds) { explore_library(semaphores); }

void events() {
  ux::event gate;
  ux::auto_reset_event flag;
  ux::latch both(2);
  ux::barrier meet(2);
  int phase[2] = {0, 0}, passed = 0;
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    start_in(all, [&, i]() -> task<> {
      if (choose(2)) {
        co_await co_wait(gate);
      } else {
        for (bool set = false; !set;) set = co_await co_wait_for(gate, some_time());
      }
      co_await co_arrive_and_wait(both);
      for (int k = 0; k < 2; ++k) {
        ++phase[i];
        co_await co_arrive_and_wait(meet);
        expect(phase[1 - i] >= phase[i], "the other has not come");
        co_await co_arrive_and_wait(meet);
      }
      for (bool set = false; !set;) set = co_await co_wait_for(flag, 1ms + some_time());
      ++passed;
      flag.set();
    });
  gate.set();
  flag.set();
  all.wait();
  expect(passed == 2 && flag.try_wait() && !flag.try_wait(), "one pass for each set");
}

TEST(Library, EventsOfBothKinds) { explore_library(events); }

task<> nap(std::chrono::milliseconds time) { co_await ux::co_sleep_for(time); }

void groups() {
  int begun = 0, ended = 0, failed = 0;
  struct counted {
    int& at;
    ~counted() { ++at; }
  };
  const auto child = [&]() -> task<> {
    ++begun;
    const counted end{ended};
    switch (choose(4)) {
      case 0: ++failed; throw failure();
      case 1: co_await nap(some_time()); break;
      case 2: {
        ux::channel<int> never;
        const ux::deadline_scope scope(some_time());
        try {
          (void)co_await co_receive(never);
        } catch (const ux::deadline_exceeded&) {
        }
        break;
      }
      case 3: {
        const ux::shield until_the_end;
        co_await nap(some_time());
      }
    }
  };
  auto parent = start([&]() -> task<> {
    ux::task_group group(choose(2) ? ux::on_error::cancel_siblings : ux::on_error::keep_going);
    for (int i = 0; i < 3; ++i) start_in(group, child);
    auto other = start([&]() -> task<> {
      co_await nap(some_time());
      group.request_stop();
    });
    bool thrown = false;
    try {
      co_await co_wait(group);
    } catch (const failure&) {
      thrown = true;
    }
    expect(group.size() == 0, "size after the wait");
    expect(thrown == (failed > 0) && static_cast<int>(group.failures()) == failed, "failures");
    co_await co_get(other);
  });
  parent.get();
  expect(begun == 3 && ended == 3, "children's frames");
}

TEST(Library, TaskGroupOfBothKinds) { explore_library(groups); }

void scopes() {  // the parent is stopped, or its deadline is over, while children run
  int live = 0;
  auto parent = start([&]() -> task<> {
    const ux::deadline_scope limit(some_time() + 1ms);
    try {
      co_await ux::co_scope([&](ux::task_group& group) -> task<> {
        for (int i = 0; i < 3; ++i)
          start_in(group, [&]() -> task<> {
            struct count {
              int& n;
              explicit count(int& of) : n(of) { ++n; }
              ~count() { --n; }
            } here{live};
            for (int k = 0; k < 2; ++k) co_await nap(some_time());
            if (choose(4) == 0) throw failure();
          });
        if (choose(4) == 0) throw failure();
        co_await nap(some_time());
      });
    } catch (const failure&) {
    } catch (const ux::operation_cancelled&) {
    }
    expect(live == 0, "children outlive their scope");
  });
  if (choose(2)) {
    ux::this_fiber::sleep_for(some_time());
    parent.request_stop();
  }
  parent.get();
}

TEST(Library, ScopeOfBothKinds) { explore_library(scopes); }

void deadlines() {
  ux::channel<int> ch;
  const auto limit = some_time() + 1ms;
  const auto begin = ux::steady_clock::now();
  auto sender = start([&]() -> task<> {
    co_await nap(some_time() + some_time());
    int v = 1;
    (void)co_await co_send_for(ch, v, some_time());
  });
  auto receiver = start([&]() -> task<> {
    bool got = false, exceeded = false;
    {
      const ux::deadline_scope scope(limit);
      auto child = start([] { return to_its_end_or_stop(nap(1h)); });
      try {
        got = (co_await co_receive(ch)).has_value();
      } catch (const ux::deadline_exceeded&) {
        exceeded = true;
      }
      const bool whole = co_await co_get(child);
      expect(!whole, "the child has no deadline");
    }
    expect(got != exceeded, "either a value or the deadline");
    expect(!exceeded || ux::steady_clock::now() - begin >= limit, "early");
    co_await nap(1ms);  // the scope is over
  });
  receiver.get();
  sender.get();
  expect(ux::steady_clock::now() - begin < 1h, "the deadline ended nothing");
}

TEST(Library, DeadlinesOfBothKinds) { explore_library(deadlines); }

void results() {
  ux::promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  const auto how = choose(3);
  auto setter = start([&]() -> task<int> {
    auto mine = std::move(promise);
    co_await to_its_end_or_stop(nap(some_time()));
    if (how == 0) mine.set_value(std::make_unique<int>(4));
    if (how == 1) mine.set_exception(std::make_exception_ptr(failure()));
    co_return 5;
  });
  auto getter = start([&]() -> task<> {
    try {
      const auto got = co_await co_get(future);
      expect(*got == 4 && how == 0, "future's value");
    } catch (const failure&) {
      expect(how == 1, "future's exception");
    } catch (const std::future_error&) {
      expect(how == 2, "a broken promise");
    }
    const int result = co_await co_get(setter);
    expect(result == 5, "the result of a join");
  });
  if (choose(2)) setter.request_stop();
  getter.get();
}

TEST(Library, ResultsOfBothKinds) { explore_library(results); }

}  // namespace
