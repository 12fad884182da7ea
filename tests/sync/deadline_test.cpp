#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>
#include <mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Deadline : public WorkersTest {
 protected:
  // In fibers and on plain threads.
  template <class F>
  void everywhere(F body) {
    run(body);
    body();
  }
};
ULEXITE_TEST_WORKERS(Deadline);

// Those of fibers are in tests/contract.
TEST_P(Deadline, EndsWaitsOfPlainThreadsAndTimedOnes) {
  everywhere([] {
    channel<int> values;
    wait_group group(1);
    mutex guard;
    condition_variable condition;
    int value = 1;
    const auto expires = [](auto&& operation) {
      const deadline_scope limit(100us);
      EXPECT_THROW(operation(), deadline_exceeded);
      EXPECT_TRUE(limit.expired());
    };
    expires([] { this_fiber::sleep_until(ulexite::steady_clock::time_point::max()); });
    expires([&] { values.receive_for(value, 1h); });
    expires([&] { values.send_for(value, 1h); });
    expires([&] { group.wait_for(1h); });
    expires([&] { select(on_receive(values, [](auto) {}), on_send(values, 2), after(1h)); });
    expires([&] {
      std::unique_lock lock(guard);
      try {
        condition.wait_for(lock, 1h);
      } catch (const deadline_exceeded&) {
        EXPECT_TRUE(lock.owns_lock());
        throw;
      }
    });
    expires([&] {
      std::unique_lock lock(guard);
      (void)condition.wait_until(lock, ulexite::steady_clock::time_point::max(), [] { return false; });
    });
    group.done();
    this_fiber::check();
  });
}

TEST_P(Deadline, IsACancellationWithACodeOfItsOwn) {
  everywhere([] {
    const deadline_scope limit(0s);
    try {
      this_fiber::sleep_for(1h);
      ADD_FAILURE() << "slept";
    } catch (const operation_cancelled& e) {
      EXPECT_EQ(e.code(), errc::deadline_exceeded);
      EXPECT_TRUE(dynamic_cast<const deadline_exceeded*>(&e));
    }
  });
}

TEST_P(Deadline, IsStickyUntilItsScopeEnds) {
  everywhere([] {
    channel<int> values(1);
    int value = 3;
    {
      const deadline_scope limit(1us);
      EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
      EXPECT_THROW(this_fiber::sleep_for(0s), deadline_exceeded);
      EXPECT_THROW(values.send(1), deadline_exceeded);
      EXPECT_FALSE(this_fiber::stop_requested()) << "nobody asked";
    }
    this_fiber::check();
    values.send(2);
    EXPECT_EQ(values.receive(), 2);
    EXPECT_EQ(values.receive_for(value, 1us), channel_status::timeout);
    EXPECT_EQ(value, 3);
  });
}

TEST_P(Deadline, ChecksNoticeItWithoutAWait) {
  everywhere([] {
    const deadline_scope limit(100us);
    channel<int> values(1);
    hog_until([&] { return limit.expired(); });
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    EXPECT_THROW(values.send(1), deadline_exceeded) << "it is known now";
  });
}

TEST_P(Deadline, OfTheFarFutureAndThePast) {
  everywhere([] {
    {
      const deadline_scope never(ulexite::steady_clock::time_point::max());
      const deadline_scope long_ago(std::chrono::hours::max());
      EXPECT_FALSE(never.expired());
      EXPECT_FALSE(long_ago.expired());
      this_fiber::check();
      this_fiber::sleep_for(1us);
    }
    {
      const deadline_scope past(ulexite::steady_clock::now() - 1s);
      EXPECT_TRUE(past.expired());
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    }
    const deadline_scope negative(-1s);
    EXPECT_TRUE(negative.expired());
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
  });
}

TEST_P(Deadline, TheNearestOfNestedOnesWins) {
  everywhere([] {
    const deadline_scope outer(1h);
    {
      const deadline_scope inner(1us);
      EXPECT_THROW(this_fiber::sleep_for(2h), deadline_exceeded);
      EXPECT_TRUE(inner.expired());
      EXPECT_FALSE(outer.expired());
      {
        const deadline_scope farther(1h);
        EXPECT_FALSE(farther.expired());
        EXPECT_THROW(this_fiber::check(), deadline_exceeded) << "the middle one still holds";
      }
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    }
    this_fiber::check();
    this_fiber::sleep_for(1us);
  });
}

TEST_P(Deadline, TheOuterOneIsSeenThroughALaterInnerOne) {
  everywhere([] {
    const deadline_scope outer(100us);
    {
      const deadline_scope inner(1h);
      EXPECT_THROW(this_fiber::sleep_for(2h), deadline_exceeded);
      EXPECT_FALSE(inner.expired());
      EXPECT_TRUE(outer.expired());
    }
    EXPECT_THROW(this_fiber::check(), deadline_exceeded) << "the end of the inner one mends nothing";
    EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
  });
}

TEST_P(Deadline, TheOuterOneHoldsAfterANearerInnerOneWasMet) {
  everywhere([] {
    const deadline_scope outer(200us);
    {
      const deadline_scope inner(100us);
      EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
    }
    EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
    EXPECT_TRUE(outer.expired());
    {
      const deadline_scope later(0s);
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    }
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
  });
}

TEST_P(Deadline, ANearerLimitOfTheWaitItselfIsATimeOut) {
  everywhere([] {
    const deadline_scope limit(1h);
    channel<int> values;
    wait_group group(1);
    mutex guard;
    condition_variable condition;
    int value = 1;
    EXPECT_EQ(values.receive_for(value, 1us), channel_status::timeout);
    EXPECT_EQ(values.send_for(value, 1us), channel_status::timeout);
    EXPECT_FALSE(group.wait_for(1us));
    EXPECT_EQ(select(on_receive(values, [](auto) {}), after(1us)), 1u);
    std::unique_lock lock(guard);
    EXPECT_EQ(condition.wait_for(lock, 1us), std::cv_status::timeout);
    EXPECT_FALSE(condition.wait_for(lock, 1us, [] { return false; }));
    this_fiber::sleep_for(1us);
    this_fiber::check();
    group.done();
  });
}

TEST_P(Deadline, AnEqualLimitOfTheWaitItselfIsATimeOutToo) {
  everywhere([] {
    const auto end = ulexite::steady_clock::now() + 1ms;
    const deadline_scope limit(end);
    int value = 1;
    EXPECT_EQ(channel<int>().receive_until(value, end), channel_status::timeout);
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
  });
}

TEST_P(Deadline, ACancelledSendKeepsItsValueAndACancelledReceiveTookNothing) {
  everywhere([] {
    channel<std::unique_ptr<int>> values;
    auto kept = std::make_unique<int>(4);
    EXPECT_THROW(timeout(100us, [&] { values.send_for(kept, 1h); }), deadline_exceeded);
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, 4);
    std::unique_ptr<int> into;
    EXPECT_EQ(values.try_receive(into), channel_status::would_block);
    channel<int> buffered(1);
    EXPECT_THROW(timeout(100us, [&] { buffered.receive(); }), deadline_exceeded);
    int value = 1;
    EXPECT_EQ(buffered.try_send(value), channel_status::ok);
    EXPECT_EQ(buffered.size(), 1u) << "nobody took it";
  });
}

}  // namespace
