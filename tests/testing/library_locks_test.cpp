#include "library.hpp"

#include <ulexite.hpp>

#include <deque>
#include <mutex>
#include <vector>

namespace {

using namespace ulexite::test;

void mutexes() {
  ux::timed_mutex m;
  int inside = 0, total = 0, wanted = 0;
  const auto one = [&] {
    for (int k = 0; k < 3; ++k) {
      bool held = true;
      switch (choose(3)) {
        case 0: m.lock(); break;
        case 1: held = m.try_lock(); break;
        case 2: held = m.try_lock_for(some_time()); break;
      }
      if (!held) continue;
      ++wanted;
      expect(++inside == 1, "two inside");
      if (choose(2)) ux::this_fiber::yield();
      if (choose(4) == 0) {
        const ux::shield s;
        ux::this_fiber::sleep_for(some_time());
      }
      ++total;
      --inside;
      m.unlock();
    }
  };
  ux::task_group all;
  for (int i = 0; i < 3; ++i) all.spawn(one);
  all.wait();
  expect(total == wanted, "mutex: total");
  expect(m.try_lock(), "free at the end");
  m.unlock();
}

TEST(Library, Mutex) { explore_library(mutexes); }

void shared_locks() {
  ux::shared_mutex m;
  int readers = 0, writers = 0;
  const auto one = [&] {
    for (int k = 0; k < 3; ++k) {
      const bool writes = choose(2);
      bool held = true;
      if (writes) {
        switch (choose(3)) {
          case 0: m.lock(); break;
          case 1: held = m.try_lock(); break;
          case 2: held = m.try_lock_for(some_time());
        }
        if (!held) continue;
        expect(++writers == 1 && readers == 0, "a writer and others");
        ux::this_fiber::yield();
        --writers;
        m.unlock();
      } else {
        switch (choose(3)) {
          case 0: m.lock_shared(); break;
          case 1: held = m.try_lock_shared(); break;
          case 2: held = m.try_lock_shared_for(some_time());
        }
        if (!held) continue;
        ++readers;
        expect(writers == 0, "a reader and a writer");
        ux::this_fiber::yield();
        --readers;
        m.unlock_shared();
      }
    }
  };
  ux::task_group all;
  for (int i = 0; i < 3; ++i) all.spawn(one);
  all.wait();
  expect(m.try_lock(), "free at the end");
  m.unlock();
}

TEST(Library, SharedMutex) { explore_library(shared_locks); }

void condition() {  // a bounded buffer with time-outs and cancellation; tokens are conserved, notifications not lost
  ux::mutex m;
  ux::condition_variable not_empty, not_full;
  std::deque<int> buffer;
  int put = 0, got = 0;
  bool ended = false;
  const auto producer = [&] {
    for (int k = 0; k < 3; ++k) {
      std::unique_lock lock(m);
      const auto room = [&] { return buffer.size() < 1; };
      bool ok = true;
      if (choose(2)) {
        not_full.wait(lock, [&] { return room() || ended; });
        ok = room();
      } else {
        ok = not_full.wait_for(lock, some_time(), room);
      }
      expect(lock.owns_lock(), "holds it");
      if (!ok) continue;
      buffer.push_back(k);
      ++put;
      not_empty.notify_one();
    }
  };
  const auto consumer = [&] {
    for (;;) {
      std::unique_lock lock(m);
      const auto some = [&] { return !buffer.empty() || ended; };
      if (choose(2)) {
        not_empty.wait(lock, some);
      } else if (!not_empty.wait_for(lock, some_time(), some)) {
        continue;
      }
      if (buffer.empty()) return;
      buffer.pop_front();
      ++got;
      not_full.notify_one();
    }
  };
  std::vector<ux::join_handle<>> producers, consumers;
  const auto guarded = [&](auto& body) {
    return [&] {
      // A waiter that is cancelled in a timed wait may have been notified: it passes the notification on, as with
      // std's.
      if (!unless_cancelled(body)) {
        not_full.notify_one();
        not_empty.notify_one();
      }
    };
  };
  for (int i = 0; i < 2; ++i) producers.push_back(ux::spawn(guarded(producer)));
  for (int i = 0; i < 2; ++i) consumers.push_back(ux::spawn(guarded(consumer)));
  if (choose(2)) producers[choose(2)].request_stop();
  if (choose(3) == 0) consumers[0].request_stop();
  for (auto& each : producers) each.get();
  {
    const std::lock_guard lock(m);
    ended = true;
  }
  not_empty.notify_all();
  for (auto& each : consumers) each.get();
  expect(put == got + static_cast<int>(buffer.size()), "cv: put and got");
}

TEST(Library, ConditionVariable) { explore_library(condition); }

void notify_counts() {
  ux::mutex m;
  ux::condition_variable cv;
  int waiting = 0, woken = 0, timed_out = 0;
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([&] {
      std::unique_lock lock(m);
      ++waiting;
      cv.wait(lock);
      ++woken;
    });
  all.spawn([&] {
    std::unique_lock lock(m);
    if (cv.wait_for(lock, some_time()) == std::cv_status::timeout)
      ++timed_out;
    else
      ++woken;
  });
  int sent = 0;
  for (;;) {  // until all have come, and no one waits
    std::unique_lock lock(m);
    if (woken + timed_out == 3) break;
    if (waiting == 2) {
      cv.notify_one();
      ++sent;
    }
    lock.unlock();
    ux::this_fiber::yield();
    if (sent > 50) ux::this_fiber::sleep_for(1ms);
  }
  all.wait();
}

TEST(Library, NotificationsAreCounted) { explore_library(notify_counts); }

void cv_exact() {
  ux::mutex m;
  ux::condition_variable cv;
  int waiting = 0;
  bool limited_woken = false, limited_done = false;
  auto forever = ux::spawn([&] {
    std::unique_lock lock(m);
    ++waiting;
    cv.wait(lock);
  });
  auto limited = ux::spawn([&] {
    std::unique_lock lock(m);
    ++waiting;
    bool woken = false;
    try {
      woken = cv.wait_for(lock, 1ms + some_time()) == std::cv_status::no_timeout;
    } catch (const ux::operation_cancelled&) {
    }
    limited_woken = woken;
    limited_done = true;
  });
  for (;;) {
    const std::lock_guard lock(m);
    if (waiting == 2) break;
    m.unlock();
    ux::this_fiber::yield();
    m.lock();
  }
  if (choose(2)) ux::this_fiber::sleep_for(1ms);
  if (choose(2)) limited.request_stop();
  cv.notify_one();
  limited.get();
  expect(limited_done, "done");
  if (limited_woken) cv.notify_one();
  forever.get();
}

TEST(Library, ANotificationIsNotLostAtATimeout) { explore_library(cv_exact); }

void semaphores() {
  ux::counting_semaphore<> s(2);
  int inside = 0;
  const auto one = [&] {
    for (int k = 0; k < 3; ++k) {
      bool held = true;
      switch (choose(3)) {
        case 0: s.acquire(); break;
        case 1: held = s.try_acquire(); break;
        case 2: held = s.try_acquire_for(some_time()); break;
      }
      if (!held) continue;
      expect(++inside <= 2, "too many inside");
      ux::this_fiber::yield();
      --inside;
      s.release();
    }
  };
  std::vector<ux::join_handle<>> all;
  for (int i = 0; i < 4; ++i) all.push_back(ux::spawn([&] { unless_cancelled(one); }));
  if (choose(2)) all[choose(4)].request_stop();
  if (choose(2)) all[choose(4)].request_stop();
  for (auto& each : all) each.get();
  expect(s.try_acquire() && s.try_acquire() && !s.try_acquire(), "permits at the end");
}

TEST(Library, Semaphore) { explore_library(semaphores); }

void events() {
  ux::event gate;
  ux::latch both(2);
  ux::barrier meet(2);
  int phase[2] = {0, 0};
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([&, i] {
      if (choose(2)) {
        while (!gate.wait_for(some_time())) {
        }
      } else {
        gate.wait();
      }
      both.count_down();
      both.wait();
      for (int k = 0; k < 2; ++k) {
        ++phase[i];
        meet.arrive_and_wait();
        expect(phase[1 - i] >= phase[i], "the other has not come");
        meet.arrive_and_wait();
      }
    });
  gate.set();
  all.wait();
}

TEST(Library, EventLatchAndBarrier) { explore_library(events); }

void once() {
  ux::once_flag flag;
  int calls = 0, successes = 0, running = 0;
  ux::task_group all;
  for (int i = 0; i < 3; ++i)
    all.spawn([&] {
      try {
        ux::call_once(flag, [&] {
          expect(++running == 1, "two at once");
          ++calls;
          ux::this_fiber::yield();
          --running;
          if (choose(3) == 0) throw failure();
          ++successes;
        });
        expect(successes == 1, "returned before the call");
      } catch (const failure&) {
      }
    });
  all.wait();
  expect(successes <= 1, "called twice");
}

TEST(Library, CallOnce) { explore_library(once); }

}  // namespace
