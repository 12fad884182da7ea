// Objects at which an abandoned fiber waited: fibers that still live meet it in each of its queues.

#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <array>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Abandoned : public WorkersTest {
 protected:
  Abandoned() { testing::internal::CaptureStderr(); }
  ~Abandoned() override { testing::internal::GetCapturedStderr(); }

  // Abandons a fiber that waits in `wait`, and ends its runtime. Then others use the returned memory.
  template <class F>
  void abandon(F wait) {
    {
      runtime brief({.threads = GetParam()});
      const auto handle = spawn_until_it_waits(brief, std::move(wait));
      EXPECT_EQ(brief.shutdown(shutdown_mode::abandon), 1u);
    }
    runtime({.threads = 1}).run([] {
      std::vector<join_handle<>> others;
      for (int i = 0; i < 8; ++i)
        others.push_back(spawn([filler = std::array<char, 64>{}] {
          static_cast<void>(filler);
          volatile char frame[4096];
          for (volatile char& each : frame) each = 0x41;
          this_fiber::yield();
        }));
      for (auto& other : others) other.join();
    });
  }
};
ULEXITE_TEST_WORKERS(Abandoned);

TEST_P(Abandoned, ReceiversTakeNothing) {
  channel<int> values(1);
  abandon([&] { values.receive(); });
  abandon([&] { select(on_receive(values, [](std::optional<int>) {}), after(1h, [] {})); });
  int value = 1;
  EXPECT_EQ(values.try_send(value), channel_status::ok);
  EXPECT_EQ(values.try_receive(value), channel_status::ok);
  values.close();
}

TEST_P(Abandoned, SendersGiveNothing) {
  channel<int> values(1);
  values.send(1);
  abandon([&] { values.send(2); });
  abandon([&] { select(on_send(values, 3, [] {}), after(1h, [] {})); });
  EXPECT_EQ(values.receive(), 1);
  int value = 0;
  EXPECT_EQ(values.try_receive(value), channel_status::would_block);
  values.close();
}

TEST_P(Abandoned, WaitersOfAnEventAreNotWoken) {
  event happened;
  abandon([&] { happened.wait(); });
  std::thread other([&] { happened.wait(); });
  happened.set();
  other.join();
}

TEST_P(Abandoned, WaitersForAPermitGetNone) {
  binary_semaphore permit(0);
  abandon([&] { permit.acquire(); });
  permit.release();
  EXPECT_TRUE(permit.try_acquire());
}

TEST_P(Abandoned, WaitersForAMutexGetItNot) {
  mutex plain;
  timed_mutex timed;
  plain.lock();
  timed.lock();
  abandon([&] { plain.lock(); });
  abandon([&] { (void)timed.try_lock_for(1h); });
  plain.unlock();
  timed.unlock();
  EXPECT_TRUE(plain.try_lock());
  EXPECT_TRUE(timed.try_lock());
  plain.unlock();
  timed.unlock();
}

TEST_P(Abandoned, AWriterKeepsNoReadersOut) {
  shared_mutex lock;
  lock.lock_shared();
  abandon([&] { lock.lock(); });
  std::thread([&] { const std::shared_lock reading(lock); }).join();
  lock.unlock_shared();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_P(Abandoned, WhatTheyHoldStaysHeld) {
  mutex lock;
  abandon([&] {
    lock.lock();
    this_fiber::sleep_for(1h);
  });
  EXPECT_FALSE(lock.try_lock());
}

template <class Condition>
void expect_wakes_the_living(Condition& changed, mutex& lock) {
  bool waits = false, done = false;
  std::thread other([&] {
    std::unique_lock held(lock);
    waits = true;
    changed.wait(held, [&] { return done; });
  });
  wait_until([&] {
    const std::lock_guard held(lock);
    return waits;
  });
  {
    const std::lock_guard held(lock);
    done = true;
  }
  changed.notify_one();
  other.join();
}

TEST_P(Abandoned, TheyTakeNoNotification) {
  mutex lock;
  condition_variable changed;
  condition_variable_any any;
  abandon([&] {
    std::unique_lock held(lock);
    changed.wait(held);
  });
  abandon([&] {
    std::unique_lock held(lock);
    any.wait(held);
  });
  expect_wakes_the_living(changed, lock);
  expect_wakes_the_living(any, lock);
}

TEST_P(Abandoned, JoinersOfAnotherRuntimesFiber) {
  event go;
  auto joined = rt().spawn([&] { go.wait(); });
  abandon([&] { joined.join(); });
  auto joiner = spawn_until_it_waits(rt(), [&] { select(on_join(joined, [] {}), after(1h, [] {})); });
  go.set();
  joiner.join();
  EXPECT_TRUE(joined.done());
}

TEST_P(Abandoned, WhatStandsOnTheirStacksCanBeUsed) {
  channel<int>* theirs = nullptr;
  std::thread sender;
  abandon([&] {
    channel<int> mine;
    theirs = &mine;
    sender = std::thread([&mine] { mine.send(7); });
    this_fiber::sleep_for(1h);
  });
  EXPECT_EQ(theirs->receive(), 7);
  sender.join();
}

// Threads claim their waits, and then resume them. The runtime may have been destroyed in between.
TEST_P(Abandoned, AThreadMayBeAboutToWakeThem) {
  for (int round = 0; round < times(100); ++round) {
    channel<int> values;
    std::atomic<int> passed{0};
    std::jthread sender([&](const std::stop_token& token) {
      for (int value = 0; !token.stop_requested(); ++passed) (void)values.send_for(value, 10us);
    });
    runtime brief({.threads = GetParam()});
    for (int i = 0; i < 2; ++i)
      brief
          .spawn([&] {
            for (;;) values.receive();
          })
          .detach();
    wait_until([&] { return passed > 20; });
    EXPECT_EQ(brief.shutdown(shutdown_mode::abandon), 2u);
  }
}

// Waits in its copy number `slow`.
struct slow_to_copy {
  slow_to_copy(event& until, int slow) : go(&until), copies_left(slow), filler(100, 'x') {}
  slow_to_copy(const slow_to_copy& other)
      : go(other.wait()), copies_left(other.copies_left - 1), filler(other.filler) {}
  void operator()() const {}
  event* wait() const {
    if (copies_left == 1) go->wait();
    return go;
  }

  event* go;
  int copies_left;
  std::string filler;
  char size[272]{};
};

TEST_P(Abandoned, AClosureThatIsBeingCopiedIsNotDestroyed) {
  event never;
  for (int slow = 1; slow <= 3; ++slow) {
    runtime& brief = make(GetParam());
    brief.run([] {  // the content of recycled blocks is not zero
      std::array<char, 304> full;
      full.fill(0x41);
      for (int i = 0; i < 8; ++i) spawn([full] { (void)full; }).join();
    });
    const slow_to_copy closure(never, slow);
    const auto handle = spawn_until_it_waits(brief, [&] { spawn(std::ref(closure)).join(), spawn(closure).join(); });
    const std::size_t waiting = handle.done() ? 0 : 1;
    EXPECT_EQ(end(brief, shutdown_mode::abandon), waiting) << "in copy " << slow;
  }
}

}  // namespace
