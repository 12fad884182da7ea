#include "library.hpp"

#include <ulexite.hpp>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

namespace {

using namespace ulexite::test;

void group_stop() {
  ux::channel<int> never;
  ux::mutex m;
  int ended = 0;
  ux::task_group group;
  const auto child = [&] {
    struct count {
      int& n;
      ~count() { ++n; }
    } here{ended};
    switch (choose(3)) {
      case 0: (void)never.receive(); break;
      case 1: ux::this_fiber::sleep_for(1h); break;
      case 2: {
        ux::event e;
        e.wait();
      }
    }
  };
  for (int i = 0; i < 2; ++i) group.spawn(child);
  if (choose(2)) group.spawn([&] { group.spawn(child); });
  auto stopper = ux::spawn([&] { group.request_stop(); });
  bool failed = choose(2);
  if (failed) group.spawn([] { throw failure(); });
  try {
    group.wait();
    expect(!failed, "no failure thrown");
  } catch (const failure&) {
    expect(failed, "failure");
  }
  stopper.get();
  expect(group.size() == 0 && ended >= 2, "children left");
}

TEST(Library, GroupThatIsStopped) { explore_library(group_stop); }

void groups() {
  int begun = 0, ended = 0, failed = 0;
  bool thrown = false;
  struct counted {
    int& at;
    ~counted() { ++at; }
  };
  const auto body = [&](int) {
    ++begun;
    const counted end{ended};
    switch (choose(5)) {
      case 0: ++failed; throw failure();
      case 1: ux::this_fiber::sleep_for(some_time()); break;
      case 2: ux::this_fiber::yield(); break;
      case 3: {
        ux::channel<int> never;
        const ux::deadline_scope scope(some_time());
        try {
          (void)never.receive();
        } catch (const ux::deadline_exceeded&) {
        }
        break;
      }
      case 4: {
        const ux::shield s;
        ux::this_fiber::sleep_for(some_time());
        break;
      }
    }
  };
  {
    ux::task_group group(choose(2) ? ux::on_error::cancel_siblings : ux::on_error::keep_going);
    for (int i = 0; i < 4; ++i) group.spawn([&, i] { body(i); });
    if (choose(3) == 0) group.request_stop();
    auto other = ux::spawn([&] {
      ux::this_fiber::sleep_for(some_time());
      group.request_stop();
    });
    try {
      group.wait();
    } catch (const failure&) {
      thrown = true;
    }
    expect(group.size() == 0, "size after wait");
    expect(thrown == (failed > 0), "a failure, and what wait threw");
    expect(static_cast<int>(group.failures()) == failed, "count of failures");
    other.get();
  }
  expect(begun == ended, "children's frames");
}

TEST(Library, TaskGroup) { explore_library(groups); }

void scopes() {  // the waiter is cancelled, or its deadline is over, while children run
  int live = 0;
  auto outer = ux::spawn([&] {
    const ux::deadline_scope limit(some_time() + 1ms);
    try {
      ux::scope([&](ux::task_group& group) {
        for (int i = 0; i < 3; ++i)
          group.spawn([&] {
            struct count {
              int& n;
              explicit count(int& of) : n(of) { ++n; }
              ~count() { --n; }
            } here{live};
            for (int k = 0; k < 3; ++k) ux::this_fiber::sleep_for(some_time());
            if (choose(4) == 0) throw failure();
          });
        if (choose(4) == 0) throw failure();
        ux::this_fiber::sleep_for(some_time());
      });
    } catch (const failure&) {
    } catch (const ux::operation_cancelled&) {
    }
    expect(live == 0, "children outlive their scope");
  });
  if (choose(2)) {
    ux::this_fiber::sleep_for(some_time());
    outer.request_stop();
  }
  outer.get();
  expect(live == 0, "children at the end");
}

TEST(Library, ScopeThatIsCancelled) { explore_library(scopes); }

void joins() {
  auto child = ux::spawn([] {
    unless_cancelled([] { ux::this_fiber::sleep_for(some_time()); });
    return 5;
  });
  ux::join_handle<int> handle = std::move(child);
  const bool done = handle.wait_for(some_time());
  expect(!done || handle.done(), "wait_for true, done false");
  if (choose(2)) handle.request_stop();
  expect(handle.get() == 5, "result");
  // A detached fiber: its handle is destroyed at any time, and its result must be destroyed once.
  struct probe {
    int& n;
    explicit probe(int& of) : n(of) { ++n; }
    probe(const probe& o) : n(o.n) { ++n; }
    ~probe() { --n; }
  };
  static int alive;
  alive = 0;
  {
    auto gone = ux::spawn([] {
      ux::this_fiber::yield();
      return probe(alive);
    });
    if (choose(2)) ux::this_fiber::yield();
    gone.detach();
  }
  for (int i = 0; i < 20 && alive != 0; ++i) ux::this_fiber::yield();
  ux::this_fiber::sleep_for(1ms);
  expect(alive == 0, "a detached result lives");
}

TEST(Library, Joins) { explore_library(joins); }

void deadlines() {
  const auto begin = ux::steady_clock::now();
  const auto limit = std::chrono::milliseconds(1 + choose(3));
  ux::channel<int> ch;
  auto sender = ux::spawn([&] {
    unless_cancelled([&] {
      ux::this_fiber::sleep_for(2ms);
      int v = 1;
      (void)ch.send_for(v, 2ms);
    });
  });
  bool exceeded = false, got = false;
  try {
    const ux::deadline_scope scope(limit);
    ux::task_group inherited;
    inherited.spawn([] { unless_cancelled([] { ux::this_fiber::sleep_for(1h); }); });
    got = ch.receive().has_value();
    {
      const ux::shield s;
      inherited.wait();
    }
  } catch (const ux::deadline_exceeded&) {
    exceeded = true;
  }
  expect(got != exceeded, "either a value or the deadline");
  expect(!exceeded || ux::steady_clock::now() - begin >= limit, "early");
  expect(ux::steady_clock::now() - begin < 1h, "the inherited deadline did not bound the child");
  sender.get();
  ux::this_fiber::check();
}

TEST(Library, Deadlines) { explore_library(deadlines); }

void futures() {
  ux::promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  const auto how = choose(3);
  auto setter = ux::spawn([promise = std::move(promise), how]() mutable {
    unless_cancelled([&] { ux::this_fiber::sleep_for(some_time()); });
    if (how == 0) promise.set_value(std::make_unique<int>(4));
    if (how == 1) promise.set_exception(std::make_exception_ptr(failure()));
  });
  (void)future.wait_for(some_time());
  try {
    expect(*future.get() == 4 && how == 0, "future's value");
  } catch (const failure&) {
    expect(how == 1, "future's exception");
  } catch (const std::future_error&) {
    expect(how == 2, "a broken promise");
  }
  setter.get();
}

TEST(Library, Futures) { explore_library(futures); }

void whens() {
  auto slow = ux::spawn([] {
    unless_cancelled([] { ux::this_fiber::sleep_for(some_time()); });
    return 1;
  });
  auto fast = ux::spawn([] { return 2; });
  std::size_t index = ux::select(ux::on_join(slow), ux::on_join(fast));
  expect(index < 2, "index");
  if (choose(2)) slow.request_stop();
  expect(slow.get() + fast.get() == 3, "results");
}

TEST(Library, SelectOfJoins) { explore_library(whens); }

void forks() {
  std::vector<int> v(40);
  for (int i = 0; i < 40; ++i) v[static_cast<std::size_t>(i)] = 40 - i;
  int a = 0, b = 0, c = 0;
  bool failed = false;
  try {
    ux::parallel_invoke(
        [&] {
          ux::this_fiber::yield();
          ++a;
        },
        [&] {
          ++b;
          if (choose(4) == 0) {
            failed = true;
            throw failure();
          }
        },
        [&] {
          ux::this_fiber::yield();
          ++c;
        });
    expect(a == 1 && b == 1 && c == 1 && !failed, "each once");
  } catch (const failure&) {
    expect(failed, "whose failure");
  }
  ux::parallel_sort(v.begin(), v.end());
  expect(std::ranges::is_sorted(v), "sorted");
}

TEST(Library, ForksAndRanges) { explore_library(forks); }

}  // namespace
