// Subscriptions of interop/redis.hpp, also over breaks of the connection.

#include "redis_fixture.hpp"

#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/channel.hpp>

#include <atomic>
#include <string>

namespace ulexite::test {
namespace {

using kind = redis::notice::kind;

class RedisSubscriber : public RedisTest {};
ULEXITE_REDIS_TEST(RedisSubscriber);

void await_subscribers(redis::pool& pool, std::string_view channel, long long count) {
  wait_until([&] { return pool.command("PUBSUB", "NUMSUB", channel)[1].integer() == count; });
}

TEST_P(RedisSubscriber, MessagesOfChannelsAndPatternsCome) {
  in_runtime([] {
    redis::pool pool(at());
    redis::subscriber from(at());
    from.subscribe("a");
    from.subscribe("b");
    from.psubscribe("news.*");
    EXPECT_EQ(from.next().what, kind::connected);
    const std::string binary("\0\r\n", 3);
    EXPECT_EQ(pool.command("PUBLISH", "b", binary).integer(), 1);
    pool.command("PUBLISH", "news.x", "n");
    pool.command("PUBLISH", "other", "o");
    pool.command("PUBLISH", "a", "1");
    redis::notice got = from.next();
    EXPECT_EQ(got.channel, "b");
    EXPECT_EQ(got.text, binary);
    EXPECT_EQ(got.pattern, "");
    got = from.next();
    EXPECT_EQ(got.pattern, "news.*");
    EXPECT_EQ(got.channel, "news.x");
    EXPECT_EQ(got.text, "n");
    EXPECT_EQ(from.next().channel, "a");
  });
}

TEST_P(RedisSubscriber, AnotherFiberChangesTheSubscriptions) {
  in_runtime([] {
    redis::pool pool(at());
    redis::subscriber from(at());
    channel<redis::notice> heard(unbounded);
    auto listener = spawn([&] {
      for (;;) heard.send(from.next());
    });
    EXPECT_EQ(heard.receive()->what, kind::connected);
    for (int i = 0; i < 20; ++i) {
      from.subscribe("later");
      from.subscribe("later");
      await_subscribers(pool, "later", 1);
      pool.command("PUBLISH", "later", i);
      EXPECT_EQ(heard.receive()->text, std::to_string(i));
      from.unsubscribe("later");
      await_subscribers(pool, "later", 0);
    }
    from.psubscribe("*");
    wait_until([&] { return pool.command("PUBSUB", "NUMPAT").integer() == 1; });
    from.punsubscribe("*");
    wait_until([&] { return pool.command("PUBSUB", "NUMPAT").integer() == 0; });
    listener.request_stop();
    EXPECT_THROW(listener.get(), operation_cancelled);
  });
}

TEST_P(RedisSubscriber, ABreakIsToldAndTheSubscriptionsAreMadeAgain) {
  in_runtime([] {
    redis::pool pool(at());
    redis::subscriber from(at());
    from.subscribe("a");
    EXPECT_EQ(from.next().what, kind::connected);
    pool.command("PUBLISH", "a", "before");
    EXPECT_EQ(from.next().text, "before");
    blocking([] { server().kill(); });
    const redis::notice lost = from.next();
    EXPECT_EQ(lost.what, kind::lost);
    EXPECT_NE(lost.text, "");
    EXPECT_THROW(timeout(100ms, [&] { from.next(); }), deadline_exceeded);  // told once
    from.subscribe("b");                                                    // meanwhile
    blocking([] { server().start(); });
    EXPECT_EQ(from.next().what, kind::connected);
    redis::repeat([&] { pool.command("PUBLISH", "a", "after"); });
    pool.command("PUBLISH", "b", "new");
    EXPECT_EQ(from.next().text, "after");
    EXPECT_EQ(from.next().text, "new");
  });
}

TEST_P(RedisSubscriber, AFrozenServerIsLost) {
  in_runtime([] {
    redis::subscriber from(at(), {.patience = 50ms});
    from.subscribe("a");
    EXPECT_EQ(from.next().what, kind::connected);
    EXPECT_THROW(timeout(300ms, [&] { from.next(); }), deadline_exceeded);  // a server that is only quiet is not
    server().freeze();
    EXPECT_EQ(from.next().what, kind::lost);
    server().thaw();
    EXPECT_EQ(from.next().what, kind::connected);
  });
}

TEST_P(RedisSubscriber, NoMessageIsLostByWaitsThatAreLeft) {
  in_runtime([] {
    constexpr int count = 2000;
    redis::pool pool(at());
    redis::subscriber from(at(), {.patience = 60s});
    from.subscribe("a");
    EXPECT_EQ(from.next().what, kind::connected);
    auto publisher = spawn([&] {
      for (int i = 0; i < count; ++i) pool.command("PUBLISH", "a", i);
    });
    int left = 0;
    for (int expected = 0, turn = 0; expected < count; ++turn) {
      const auto got = try_for(std::chrono::microseconds(turn * 37 % 400), [&] { return from.next(); });
      if (got)
        EXPECT_EQ(got->text, std::to_string(expected++));
      else
        ++left;
    }
    publisher.get();
    EXPECT_GT(left, 0);
  });
}

TEST_P(RedisSubscriber, ARefusalIsALoss) {
  in_runtime([] {
    redis::connection admin(at());
    admin.command("ACL", "SETUSER", "ann", "on", ">p", "+@all", "resetchannels", "&open");
    redis::subscriber from(at(), {.user = "ann", .password = "p"});
    from.subscribe("shut");
    const redis::notice lost = from.next();
    EXPECT_EQ(lost.what, kind::lost);
    EXPECT_EQ(lost.text.substr(0, 6), "NOPERM") << lost.text;
    from.unsubscribe("shut");
    EXPECT_EQ(from.next().what, kind::connected);
    admin.command("ACL", "DELUSER", "ann");
  });
}

}  // namespace
}  // namespace ulexite::test
