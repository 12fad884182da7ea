#include "library.hpp"

#include <ulexite.hpp>

#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace {

using namespace ulexite::test;

// A waiter for more permits than there are leaves, and the waiters behind it must get theirs.
void permits_behind_one_that_leaves() {
  ux::counting_semaphore<> s(1);
  auto wants_two = ux::spawn([&] { return unless_cancelled([&] { s.acquire(2); }); });
  auto wants_one = ux::spawn([&] { s.acquire(); });
  if (choose(2)) ux::this_fiber::sleep_for(some_time());
  wants_two.request_stop();
  expect(!wants_two.get(), "two permits of one");
  wants_one.get();
  expect(!s.try_acquire(), "permits at the end");
}

TEST(Library, PermitsBehindAWaiterThatLeaves) { explore_library(permits_behind_one_that_leaves); }

// A reader holds the lock until the other readers have come; a writer between them gives up.
void readers_behind_a_writer_that_leaves() {
  ux::shared_mutex m;
  ux::task_group readers, writer;
  m.lock_shared();
  writer.spawn([&] { expect(!m.try_lock_for(some_time()), "a writer beside a reader"); });
  for (int i = 0; i < 2; ++i)
    readers.spawn([&] {
      m.lock_shared();
      m.unlock_shared();
    });
  readers.wait();
  writer.wait();
  m.unlock_shared();
  expect(m.try_lock(), "free at the end");
  m.unlock();
}

TEST(Library, ReadersBehindAWriterThatLeaves) { explore_library(readers_behind_a_writer_that_leaves); }

// condition_variable_any over locks of all kinds: each item is taken, even if waiters time out or are cancelled.
template <class Mutex>
void any_condition() {
  Mutex m;
  ux::condition_variable_any changed;
  int there = 0, taken = 0, given_up = 0;
  std::vector<ux::join_handle<>> takers;
  for (int i = 0; i < 3; ++i)
    takers.push_back(ux::spawn([&] {
      std::unique_lock lock(m);
      const auto some = [&] { return there > 0; };
      const bool came = unless_cancelled([&] {
        if (choose(2))
          changed.wait(lock, some);
        else if (!changed.wait_for(lock, some_time(), some))
          lock.unlock();
      });
      if (came && lock.owns_lock()) {
        --there;
        ++taken;
      } else {
        ++given_up;
        if (lock.owns_lock()) lock.unlock();
        changed.notify_one();  // it may have been for this one
      }
    }));
  if (choose(2)) takers[choose(3)].request_stop();
  for (int i = 0; i < 3; ++i) {
    const std::lock_guard lock(m);
    ++there;
    choose(2) ? changed.notify_one() : changed.notify_all();
  }
  for (auto& each : takers) each.get();
  expect(taken + given_up == 3 && there == given_up, "put and taken");
}

TEST(Library, ConditionVariableAnyOfMutex) { explore_library(any_condition<ux::mutex>); }
TEST(Library, ConditionVariableAnyOfSharedMutex) { explore_library(any_condition<ux::shared_mutex>); }

// Values that are broadcast: each reader sees the newest at the end, and what it has not missed in its order.
void broadcasts() {
  ux::broadcast<int> news(2);
  ux::task_group readers;
  for (int i = 0; i < 2; ++i)
    readers.spawn([&, from = news.subscribe()]() mutable {
      int last = 0;
      while (const auto value = from.receive()) {
        expect(*value > last, "in their order");
        last = *value;
        if (choose(3) == 0) ux::this_fiber::sleep_for(some_time());
      }
      expect(last == 4, "the newest is not lost");
    });
  for (int i = 1; i <= 4; ++i) news.send(i);
  news.close();
  readers.wait();
}

TEST(Library, Broadcast) { explore_library(broadcasts); }

// A flag that lets one wait pass for each time it is set.
void auto_reset() {
  ux::auto_reset_event flag;
  int passed = 0;
  ux::task_group waiters;
  for (int i = 0; i < 2; ++i)
    waiters.spawn([&] {
      while (!flag.wait_for(1ms + some_time())) {
      }
      ++passed;
      flag.set();
    });
  flag.set();
  waiters.wait();
  expect(passed == 2 && flag.try_wait() && !flag.try_wait(), "one pass for each set");
}

TEST(Library, AutoResetEvent) { explore_library(auto_reset); }

}  // namespace
