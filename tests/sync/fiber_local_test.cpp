#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class FiberLocal : public WorkersTest {};
ULEXITE_TEST_WORKERS(FiberLocal);

TEST_P(FiberLocal, EachFiberAndThreadHasItsOwn) {
  fiber_local<int> number;
  fiber_local<std::string> text([] { return std::string("new"); });
  const auto use = [&] {
    EXPECT_EQ(*number, 0);
    EXPECT_EQ(*text, "new");
    *number = 1;
    text->append("er");
    this_fiber::yield();
    EXPECT_EQ(number.get(), 1);
    EXPECT_EQ(text.get(), "newer");
  };
  run([&] {
    use();
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i) all.push_back(spawn(use));
    for (auto& each : all) each.get();
    EXPECT_EQ(*number, 1);
  });
  use();
  std::thread(use).join();
  EXPECT_EQ(*number, 1);
}

TEST_P(FiberLocal, ItsValueIsMadeOncePerFiberAndByThatFiber) {
  std::atomic<int> made{0};
  fiber_local<std::uint64_t> number([&] {
    ++made;
    this_fiber::yield();  // it may wait
    return this_fiber::id();
  });
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(spawn([&] {
        std::uint64_t* const mine = &*number;
        EXPECT_EQ(*mine, this_fiber::id());
        for (int j = 0; j < 5; ++j) {
          this_fiber::yield();
          EXPECT_EQ(&*number, mine);
        }
      }));
    for (auto& each : all) each.get();
  });
  EXPECT_EQ(made, 20);
}

TEST_P(FiberLocal, IsMadeAtTheNextUseWhenMakingItFailed) {
  run([&] {
    int calls = 0;
    fiber_local<int> value([&] { return ++calls == 1 ? throw std::runtime_error("not yet") : calls; });
    EXPECT_THROW(*value, std::runtime_error);
    EXPECT_EQ(*value, 2);
    EXPECT_EQ(*value, 2);
  });
}

TEST_P(FiberLocal, HoldsWhatCannotBeMoved) {
  run([] {
    fiber_local<std::mutex> lock;
    EXPECT_TRUE(lock->try_lock());
    lock->unlock();
    fiber_local<std::unique_ptr<int>> owner([] { return std::make_unique<int>(4); });
    EXPECT_EQ(**owner, 4);
  });
}

TEST_P(FiberLocal, FollowsItsFiberOverMigrations) {
  fiber_local<int> count;
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 8; ++i)
      all.push_back(spawn([&] {
        for (int j = 0; j < times(200); ++j) {
          EXPECT_EQ((*count)++, j);
          if (j % 10 == 0) {
            this_fiber::sleep_for(1us);
          } else {
            this_fiber::yield();
          }
        }
      }));
    for (auto& each : all) each.get();
  });
}

// The counts of the destructors below, and their reader.
struct places {
  std::atomic<int> destroyed{0}, in_fibers{0};
};

struct ends_slowly {
  explicit ends_slowly(places& to) : at(&to) {}
  ends_slowly(const ends_slowly&) = delete;
  ends_slowly& operator=(const ends_slowly&) = delete;
  ~ends_slowly() {
    const shield uninterrupted;  // it may be cancelled
    const auto id = this_fiber::id();
    this_fiber::yield();
    this_fiber::sleep_for(200us);
    if (in_fiber() && id != 0 && id == this_fiber::id()) ++at->in_fibers;
    ++at->destroyed;
  }
  places* at;
};

TEST_P(FiberLocal, IsDestroyedAtTheEndOfItsFiberWhichMayStillWait) {
  places seen;
  fiber_local<ends_slowly> value([&] { return ends_slowly(seen); });
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i) all.push_back(spawn([&] { value.get(); }));
    for (auto& each : all) each.join();
    EXPECT_EQ(seen.destroyed, 20) << "before the end of the fiber is told";
    auto fails = spawn([&] {
      value.get();
      throw std::runtime_error("also then");
    });
    EXPECT_THROW(fails.get(), std::runtime_error);
  });
  EXPECT_EQ(seen.destroyed, 21);
  EXPECT_EQ(seen.in_fibers, 21);
}

TEST_P(FiberLocal, IsDestroyedInDetachedAndCancelledFibersToo) {
  places seen;
  fiber_local<ends_slowly> value([&] { return ends_slowly(seen); });
  run([&] {
    task_group group;
    for (int i = 0; i < 10; ++i) spawn([&] { value.get(); }).detach();
    auto cancelled = spawn([&] {
      value.get();
      wait_for_ever();
    });
    this_fiber::yield();
    cancelled.request_stop();
    cancelled.join();
    group.spawn([&] { value.get(); });
    group.wait();
    wait_until([&] { return seen.destroyed == 12; });
    EXPECT_EQ(seen.in_fibers, 12);
  });
}

// The same without a shield of its own, and with a wait that a partner ends.
struct waits_at_end {
  explicit waits_at_end(channel<int>& to) : partner(&to) {}
  waits_at_end(const waits_at_end&) = delete;
  waits_at_end& operator=(const waits_at_end&) = delete;
  ~waits_at_end() {
    this_fiber::check();
    this_fiber::sleep_for(1us);
    partner->send(1);
  }
  channel<int>* partner;
};

TEST_P(FiberLocal, MayWaitWhenItIsDestroyedThoughItsFiberMayNotAnyMore) {
  run([] {
    channel<int> last;
    fiber_local<waits_at_end> value([&] { return waits_at_end(last); });
    for (const bool inherits : {false, true}) {
      join_handle<> handle;
      std::atomic<bool> ready{false};
      {
        const deadline_scope limit(inherits ? 0s : 1h);
        handle = spawn([&, captured = std::make_unique<waits_at_end>(last)] {
          value.get();
          ready = true;
          wait_for_ever();
        });
      }
      if (!inherits) {
        wait_until([&] { return ready.load(); });
        handle.request_stop();
      }
      EXPECT_EQ(last.receive(), 1);
      EXPECT_FALSE(handle.done());
      EXPECT_EQ(last.receive(), 1) << "what the function had captured";
      if (inherits) {
        EXPECT_THROW(handle.get(), deadline_exceeded);
      } else {
        EXPECT_THROW(handle.get(), operation_cancelled);
      }
    }
  });
}

TEST_P(FiberLocal, IsDestroyedBeforeAGroupHasEnded) {
  places seen;
  fiber_local<ends_slowly> value([&] { return ends_slowly(seen); });
  run([&] {
    task_group waited;
    task_group group;
    for (int round = 1; round <= 5; ++round) {
      for (int i = 0; i < 4; ++i) waited.spawn([&] { value.get(); });
      waited.wait();
      EXPECT_EQ(seen.destroyed, 8 * round - 4);
      for (int i = 0; i < 4; ++i) group.spawn([&] { value.get(); });
      group.wait();
      EXPECT_EQ(seen.destroyed, 8 * round);
    }
  });
}

// Each destructor uses the next fiber_local. So that one is made at the end of the fiber, and destroyed too.
struct chain {
  places* at;
  fiber_local<chain>* next;
  chain(places& p, fiber_local<chain>* n) : at(&p), next(n) {}
  chain(const chain&) = delete;
  chain& operator=(const chain&) = delete;
  ~chain() {
    if (next) next->get();
    if (in_fiber()) ++at->in_fibers;
    ++at->destroyed;
  }
};

TEST_P(FiberLocal, ADestructorMayUseAnother) {
  places seen;
  fiber_local<chain> third([&] { return chain(seen, nullptr); });
  fiber_local<chain> second([&] { return chain(seen, &third); });
  fiber_local<chain> first([&] { return chain(seen, &second); });
  run([&] { spawn([&] { first.get(); }).join(); });
  EXPECT_EQ(seen.destroyed, 3);
  EXPECT_EQ(seen.in_fibers, 3);
  std::thread([&] { first.get(); }).join();
  EXPECT_EQ(seen.destroyed, 6);
}

// The result of a detached fiber is destroyed last. Its destructor uses a fiber_local for the first time.
TEST_P(FiberLocal, IsUsedByTheDestructorOfAnUntakenResult) {
  places seen;
  fiber_local<ends_slowly> value([&] { return ends_slowly(seen); });
  struct user {
    fiber_local<ends_slowly>* use;
    explicit user(fiber_local<ends_slowly>& u) : use(&u) {}
    user(user&& other) noexcept : use(std::exchange(other.use, nullptr)) {}
    ~user() {
      if (use) use->get();
    }
  };
  std::atomic<bool> detached{false};
  for (int i = 0; i < 10; ++i)
    rt().spawn([&] {
          wait_until([&] { return detached.load(); });
          return user(value);
        })
        .detach();
  detached = true;
  end(rt(), shutdown_mode::drain);
  EXPECT_EQ(seen.destroyed, 10);
  EXPECT_EQ(seen.in_fibers, 10);
}

TEST_P(FiberLocal, ValuesOutliveIt) {
  places seen;
  run([&] {
    auto value = std::make_unique<fiber_local<ends_slowly>>([&] { return ends_slowly(seen); });
    channel<int> go;
    auto user = spawn([&] {
      value->get();
      go.send(1);
      go.receive();
    });
    go.receive();
    value.reset();
    EXPECT_EQ(seen.destroyed, 0);
    fiber_local<int> another([] { return 3; });
    EXPECT_EQ(*another, 3);
    go.send(1);
    user.join();
    EXPECT_EQ(seen.destroyed, 1);
  });
}

TEST_P(FiberLocal, ANewOneAtTheSamePlaceIsAnother) {
  run([] {
    std::optional<fiber_local<int>> value;
    for (int i = 0; i < 10; ++i) {
      value.emplace([i] { return i; });
      EXPECT_EQ(**value, i);
    }
  });
}

}  // namespace
