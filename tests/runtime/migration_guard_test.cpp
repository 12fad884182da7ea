// A pinned fiber stays on its thread, and others run beside it.

#include "support/waiting.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_for.hpp>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class MigrationGuard : public WorkersTest {};
ULEXITE_TEST_WORKERS(MigrationGuard);

// Opaque: an address or value of a thread may not be kept over a wait.
[[gnu::noinline]] std::thread::id here() { return std::this_thread::get_id(); }

void wait_in_some_way(int which, channel<int>& ring) {
  switch (which % 4) {
    case 0: this_fiber::yield(); break;
    case 1: this_fiber::sleep_for(1us); break;
    case 2:
      ring.send(1);
      static_cast<void>(ring.receive());
      break;
    default: spawn([] {}).join(); break;
  }
}

TEST_P(MigrationGuard, StaysOnItsThread) {
  run([&] {
    channel<int> ring(4);
    std::vector<join_handle<>> all;
    for (int i = 0; i < 12; ++i)
      all.push_back(spawn([&, i] {
        for (int times = 0; times < 5; ++times) {
          const no_migration_scope pinned;
          const std::thread::id mine = here();
          for (int round = 0; round < 100; ++round) {
            wait_in_some_way(i + round, ring);
            ASSERT_EQ(here(), mine);
          }
        }
      }));
    for (auto& each : all) each.get();
  });
}

TEST_P(MigrationGuard, MayBeNestedAndThrownThrough) {
  run([&] {
    const std::thread::id mine = [] {
      const no_migration_scope outer;
      const std::thread::id at = here();
      {
        const no_migration_scope inner;
        this_fiber::yield();
      }
      for (int i = 0; i < 100; ++i) {
        this_fiber::yield();
        EXPECT_EQ(here(), at);
      }
      return at;
    }();
    static_cast<void>(mine);
    EXPECT_THROW(
        [] {
          const no_migration_scope pinned;
          this_fiber::yield();
          throw std::runtime_error("through");
        }(),
        std::runtime_error);
    EXPECT_EQ(spawn([] { return 5; }).get(), 5);
  });
}

TEST_P(MigrationGuard, InAContext) {
  run([&] {
    concurrent_context context;
    channel<int> ring(2);
    int unguarded = 0;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(context.spawn([&, i] {
        const no_migration_scope pinned;
        const std::thread::id mine = here();
        for (int round = 0; round < 200; ++round) {
          ++unguarded;
          if (round % 3 == 0) this_fiber::yield();
          if (round % 3 == 1) this_fiber::sleep_for(std::chrono::microseconds(i));
          ASSERT_EQ(here(), mine);
        }
      }));
    for (auto& each : all) each.get();
    EXPECT_EQ(unguarded, 1200);
  });
}

// A worker with a pinned fiber is not given to another thread, and its work is not either.
TEST_P(MigrationGuard, ItsWorkerIsNotHandedOff) {
  run([&] {
    const no_migration_scope pinned;
    const std::thread::id mine = here();
    EXPECT_EQ(block_in_place([] { return here(); }), mine);
    EXPECT_EQ(here(), mine);
    std::vector<join_handle<>> others;
    for (int i = 0; i < 8; ++i)
      others.push_back(spawn([] { block_in_place([] { std::this_thread::sleep_for(100us); }); }));
    for (auto& each : others) each.get();
    EXPECT_EQ(here(), mine);
    std::size_t sum = 0;
    parallel_for(std::size_t{0}, std::size_t{1000}, [&](std::size_t i) {
      sum += i;
      EXPECT_EQ(here(), mine);
    });
    EXPECT_EQ(sum, 499'500U);
  });
}

TEST_P(MigrationGuard, IsWokenFromAnywhereWhileItsWorkerSleeps) {
  run([&] {
    event go, done;
    std::thread outside;
    auto pinned = spawn([&] {
      const no_migration_scope guard;
      const std::thread::id mine = here();
      for (int i = 0; i < 50; ++i) {
        event woken;
        std::thread waker([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(10 * i));
          woken.set();
        });
        woken.wait();
        EXPECT_EQ(here(), mine);
        waker.join();
      }
    });
    pinned.get();
  });
}

TEST_P(MigrationGuard, Cancellation) {
  expect_stop_ends(rt(), [] {
    const no_migration_scope pinned;
    this_fiber::sleep_for(1h);
  });
}

TEST_P(MigrationGuard, OnAPlainThreadItIsNothing) {
  const no_migration_scope pinned;
  EXPECT_EQ(run([] { return 3; }), 3);
}

}  // namespace
