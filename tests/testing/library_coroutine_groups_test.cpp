// Groups, joins, broadcasts and counts under chosen schedules, with coroutines and fibers mixed.

#include "library_kinds.hpp"

#include <ulexite.hpp>

#include <optional>
#include <utility>

namespace {

using namespace ulexite::test;
using ux::task;

task<> nap(std::chrono::milliseconds time) { co_await ux::co_sleep_for(time); }

void group_stop() {
  ux::channel<int> never;
  int ended = 0;
  ux::task_group group;
  const auto child = [&]() -> task<> {
    struct count {
      int& n;
      ~count() { ++n; }
    } const here{ended};
    switch (choose(3)) {
      case 0: (void)co_await co_receive(never); break;
      case 1: co_await nap(1h); break;
      case 2: {
        ux::event not_set;
        co_await co_wait(not_set);
      }
    }
  };
  for (int i = 0; i < 2; ++i) start_in(group, child);
  if (choose(2)) group.spawn([&] { start_in(group, child); });
  auto stopper = ux::spawn([&] { group.request_stop(); });
  const bool failed = choose(2);
  if (failed)
    start_in(group, []() -> task<> {
      throw failure();
      co_return;
    });
  auto waiter = start([&]() -> task<> {
    bool thrown = false;
    try {
      co_await co_wait(group);
    } catch (const failure&) {
      thrown = true;
    }
    expect(thrown == failed, "the failure");
  });
  waiter.get();
  stopper.get();
  expect(group.size() == 0 && ended >= 2, "children left");
}

TEST(Library, GroupOfBothKindsThatIsStopped) { explore_library(group_stop); }

struct probe {
  int& n;
  explicit probe(int& of) : n(of) { ++n; }
  probe(const probe& other) : n(other.n) { ++n; }
  ~probe() { --n; }
};

void joins() {
  auto child = start([]() -> task<int> {
    co_await to_its_end_or_stop(nap(some_time()));
    co_return 5;
  });
  auto joiner = start([&]() -> task<> {
    const auto index = co_await ux::co_select(ux::on_join(child), ux::after(some_time()));
    expect(index == 1 || child.done(), "joined before the end");
    if (choose(2)) child.request_stop();
    const int result = co_await co_get(child);
    expect(result == 5, "result");
  });
  joiner.get();
  // The handle of a detached one is destroyed at any time, and its result must be destroyed once.
  static int alive;
  alive = 0;
  {
    auto gone = start([]() -> task<probe> {
      co_await ux::co_yield_now();
      co_return probe(alive);
    });
    if (choose(2)) ux::this_fiber::yield();
    gone.detach();
  }
  for (int i = 0; i < 20 && alive != 0; ++i) ux::this_fiber::yield();
  ux::this_fiber::sleep_for(1ms);
  expect(alive == 0, "a detached result lives");
}

TEST(Library, JoinsOfBothKinds) { explore_library(joins); }

void select_joins() {
  auto slow = start([]() -> task<int> {
    co_await to_its_end_or_stop(nap(some_time()));
    co_return 1;
  });
  auto fast = start([]() -> task<int> { co_return 2; });
  auto chooser = start([&]() -> task<> {
    const auto index = co_await ux::co_select(ux::on_join(slow), ux::on_join(fast));
    expect(index == 0 ? slow.done() : fast.done(), "joined before the end");
    if (choose(2)) slow.request_stop();
    const int first = co_await co_get(slow), second = co_await co_get(fast);
    expect(first + second == 3, "results");
  });
  chooser.get();
}

TEST(Library, SelectOfJoinsOfBothKinds) { explore_library(select_joins); }

void tickers() {
  ux::ticker every(1ms);
  bool stopped = false;
  auto stopper = start([&]() -> task<> {
    if (!choose(2)) co_return;
    co_await nap(some_time());
    stopped = true;
    every.stop();
  });
  auto receiver = start([&]() -> task<> {
    ux::steady_clock::time_point last{};
    for (int i = 0; i < 3; ++i) {
      const auto now = co_await co_receive(every.channel());
      expect(now || stopped, "the end of a ticker that goes on");
      if (!now) break;
      expect(*now > last, "ticks in their order");
      last = *now;
      if (choose(2)) co_await nap(some_time());
    }
  });
  receiver.get();
  stopper.get();
}

TEST(Library, TickerOfBothKinds) { explore_library(tickers); }

// Each reader of a broadcast sees the newest at the end, and what it has not missed in its order. That of a watch may
// begin with any value.
void broadcasts() {
  ux::broadcast<int> news(2);
  ux::watch<int> state(0);
  ux::task_group readers;
  const auto read = [](auto from) -> task<> {
    int last = 0;
    while (const auto value = co_await co_receive(from)) {
      expect(*value > last, "in their order");
      last = *value;
      if (choose(3) == 0) co_await nap(some_time());
    }
    expect(last == 4, "the newest is not lost");
  };
  for (int i = 0; i < 2; ++i) {
    start_in(readers, [&, from = news.subscribe()]() mutable { return read(std::move(from)); });
    start_in(readers, [&, from = state.subscribe()]() mutable { return read(std::move(from)); });
  }
  for (int i = 1; i <= 4; ++i) {
    news.send(i);
    state.set(i);
  }
  news.close();
  state.close();
  readers.wait();
}

TEST(Library, BroadcastAndWatchOfBothKinds) { explore_library(broadcasts); }

// No wait ends without a notification, and each notification ends a wait if there is one.
void notifications() {
  ux::mutex m;
  ux::condition_variable changed;
  int waiting = 0, woken = 0, timed_out = 0, sent = 0;
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    start_in(all, [&]() -> task<> {
      auto lock = co_await ux::co_lock(m);
      ++waiting;
      co_await co_wait(changed, lock);
      ++woken;
    });
  start_in(all, [&]() -> task<> {
    auto lock = co_await ux::co_lock(m);
    const std::cv_status how = co_await co_wait_for(changed, lock, some_time());
    ++(how == std::cv_status::timeout ? timed_out : woken);
  });
  start_in(all, [&]() -> task<> {
    for (bool ended = false; !ended;) {
      {
        const auto lock = co_await ux::co_lock(m);
        ended = woken + timed_out == 3;
        if (!ended && waiting == 2) {
          changed.notify_one();
          ++sent;
        }
      }
      co_await ux::co_yield_now();
      if (sent > 50) co_await nap(1ms);
    }
  });
  all.wait();
  expect(woken <= sent, "woken without a notification");
}

TEST(Library, NotificationsOfBothKindsAreCounted) { explore_library(notifications); }

// Work that adds work, and those that wait for its end, with a limit or without.
void wait_groups() {
  ux::wait_group work;
  int begun = 0, ended = 0, ends = 0;  // and how often nothing was left
  ux::task_group all;
  const auto begin = [&] {
    work.add();
    ++begun;
  };
  const auto end = [&] {
    if (++ended == begun) ++ends;
    work.done();
  };
  const auto item = [&]() -> task<> {
    co_await nap(some_time());
    end();
  };
  begin();
  start_in(all, item);
  start_in(all, [&]() -> task<> {
    begin();
    co_await ux::co_yield_now();
    if (choose(2)) {
      begin();
      start_in(all, item);
    }
    end();
  });
  for (int i = 0; i < 2; ++i)
    start_in(all, [&]() -> task<> {
      const bool nothing_left = begun == ended;
      const int before = ends;
      bool done = true;
      if (choose(2)) {
        co_await co_wait(work);
      } else {
        done = co_await co_wait_for(work, some_time());
      }
      expect(!done || nothing_left || ends > before, "the work has not ended");
    });
  all.wait();
  expect(begun == ended && work.count() == 0, "work left");
}

TEST(Library, WaitGroupOfBothKinds) { explore_library(wait_groups); }

// The waiter for two permits is a fiber, because co_acquire takes one.
void permits_behind_one_that_leaves() {
  ux::counting_semaphore<> s(1);
  auto wants_two = ux::spawn([&] { return unless_cancelled([&] { s.acquire(2); }); });
  auto wants_one = start([&]() -> task<> { co_await co_acquire(s); });
  if (choose(2)) ux::this_fiber::sleep_for(some_time());
  wants_two.request_stop();
  expect(!wants_two.get(), "two permits of one");
  wants_one.get();
  expect(!s.try_acquire(), "permits at the end");
}

TEST(Library, PermitsOfBothKindsBehindAWaiterThatLeaves) { explore_library(permits_behind_one_that_leaves); }

// The writer is a fiber, because its time limit has no co_ form.
void readers_behind_a_writer_that_leaves() {
  ux::shared_mutex m;
  ux::task_group readers, writer;
  m.lock_shared();
  writer.spawn([&] { expect(!m.try_lock_for(some_time()), "a writer beside a reader"); });
  for (int i = 0; i < 2; ++i) start_in(readers, [&]() -> task<> { const auto lock = co_await ux::co_lock_shared(m); });
  readers.wait();
  writer.wait();
  m.unlock_shared();
  expect(m.try_lock(), "free at the end");
  m.unlock();
}

TEST(Library, ReadersOfBothKindsBehindAWriterThatLeaves) { explore_library(readers_behind_a_writer_that_leaves); }

}  // namespace
