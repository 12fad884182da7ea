// interop/redis.hpp with a real redis-server.

#include "redis_fixture.hpp"

#include <ulexite/sync/channel.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace ulexite::test {
namespace {

class Redis : public RedisTest {};
ULEXITE_REDIS_TEST(Redis);

TEST_P(Redis, ThePageWorks) {
  std::vector<std::string> said;
  in_runtime([&] {
    namespace ux = ulexite;
    const std::string where = server().where();
    const auto print = [&](std::string text) { said.push_back(std::move(text)); };

    // quote begins
    namespace redis = ulexite::redis;

    redis::pool db(ux::net::address::parse(where), {.size = 4});  // "localhost:6379"
    db.command("DEL", "visits");
    ux::scope([&](ux::task_group& visitors) {
      for (int i = 0; i < 100; ++i)
        visitors.spawn([&] {
          try {
            const ux::deadline_scope patience(10s);
            db.command("INCR", "visits");
          } catch (const redis::unanswered& why) {
            print(why.sent() ? "perhaps counted" : "not counted");
          }
        });
    });
    print(std::string(db.command("GET", "visits").text()) + " visits");
    // quote ends
  });
  EXPECT_EQ(said, std::vector<std::string>{"100 visits"});
}

TEST_P(Redis, RepliesHaveKindsAndSayWhatTheyAreInstead) {
  in_runtime([] {
    redis::connection db(at());
    EXPECT_EQ(db.command("SET", "a", "text").text(), "OK");
    EXPECT_EQ(db.command("GET", "a").text(), "text");
    EXPECT_TRUE(db.command("GET", "none").is_null());
    EXPECT_EQ(db.command("INCRBY", "n", -7).integer(), -7);
    db.command("RPUSH", "list", "x", "", "z");
    std::string joined;
    const redis::reply list = db.command("LRANGE", "list", 0, -1);
    for (const redis::reply_view each : list) joined += "[" + std::string(each.text()) + "]";
    EXPECT_EQ(joined, "[x][][z]");
    EXPECT_EQ(list.size(), 3u);
    EXPECT_EQ(list[2].text(), "z");
    for (const redis::reply_view each : db.command("LRANGE", "none", 0, -1)) FAIL() << each.describe();
    EXPECT_EQ(db.command("BLPOP", "none", 0.01).size(), 0u);  // null

    EXPECT_STREQ(thrown_by<redis::reply_error>([&] { static_cast<void>(db.command("GET", "n").integer()); }).what(),
                 "ulexite: redis: expected an integer, and got the text \"-7\"");
    EXPECT_STREQ(thrown_by<redis::reply_error>([&] { static_cast<void>(db.command("GET", "none").text()); }).what(),
                 "ulexite: redis: expected a text, and got null");
    EXPECT_STREQ(thrown_by<redis::reply_error>([&] { static_cast<void>(list[3]); }).what(),
                 "ulexite: redis: expected a list of at least 4, and got a list of 3");
    const auto refused = thrown_by<redis::server_error>([&] { db.command("INCR", "list"); });
    EXPECT_EQ(refused.code(), "WRONGTYPE");
    EXPECT_FALSE(refused.may_succeed_later());
    EXPECT_EQ(db.command("ECHO", "it still works").text(), "it still works");
    EXPECT_THROW(db.command(), usage_error);
    EXPECT_TRUE(db.usable());
  });
}

TEST_P(Redis, WordsAreTextsOfAnyBytesAndNumbers) {
  in_runtime([] {
    redis::connection db(at());
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    all += "\r\n$3\r\n*2\r\n";
    EXPECT_EQ(db.command("ECHO", all).text(), all);
    EXPECT_EQ(db.command("ECHO", std::string_view("part of it").substr(0, 4)).text(), "part");
    EXPECT_EQ(db.command("ECHO", "").text(), "");
    EXPECT_EQ(db.command("ECHO", std::numeric_limits<std::int64_t>::min()).text(), "-9223372036854775808");
    EXPECT_EQ(db.command("ECHO", std::numeric_limits<std::uint64_t>::max()).text(), "18446744073709551615");
    EXPECT_EQ(db.command("ECHO", 0).text(), "0");
    EXPECT_EQ(db.command("ECHO", -1.5).text(), "-1.5");
    EXPECT_EQ(std::stod(std::string(db.command("ECHO", std::numeric_limits<double>::min()).text())),
              std::numeric_limits<double>::min());
    const std::string large(5'000'000, 'x');
    EXPECT_EQ(db.command("ECHO", large).text(), large);
    const std::vector<redis::argument> words{"MSET", "a", 1, "b", 2};
    db.command(words);
    EXPECT_EQ(db.command("GET", "b").text(), "2");
  });
}

TEST_P(Redis, PipelinesKeepTheOrderAndGiveErrorsAsReplies) {
  in_runtime([] {
    redis::connection db(at());
    constexpr int count = 10'000;
    for (int i = 1; i <= count; ++i) {
      if (i == 50) db.send("LPUSH", "n", "x");
      db.send("INCR", "n");
    }
    EXPECT_EQ(db.unread(), std::size_t{count + 1});
    EXPECT_THROW(db.receive().is_error() ? void() : static_cast<void>(db.command("PING")), usage_error);
    for (int i = 2; i <= count; ++i) {
      if (i == 50) {
        const redis::reply wrong = db.receive();
        EXPECT_TRUE(wrong.is_error());
        EXPECT_THROW(wrong.check(), redis::server_error);
      }
      EXPECT_EQ(db.receive().integer(), i);
    }
    EXPECT_TRUE(db.usable());
  });
}

TEST_P(Redis, AConnectionIsGreetedAsTheOptionsSay) {
  in_runtime([] {
    redis::connection admin(at());
    admin.command("ACL", "SETUSER", "ann", "on", ">se cret", "~*", "+@all");
    redis::connection db(at(), {.user = "ann", .password = "se cret", .database = 3, .name = "tester"});
    EXPECT_EQ(db.command("ACL", "WHOAMI").text(), "ann");
    EXPECT_EQ(db.command("CLIENT", "GETNAME").text(), "tester");
    db.command("SET", "only", "in 3");
    EXPECT_TRUE(admin.command("GET", "only").is_null());

    const redis::connection_options wrong{.user = "ann", .password = "no"};
    EXPECT_EQ(thrown_by<redis::server_error>([&] { redis::connection(at(), wrong); }).code(), "WRONGPASS");
    redis::pool pool(at(), {.connection = wrong});
    EXPECT_EQ(thrown_by<redis::server_error>([&] { pool.command("PING"); }).code(), "WRONGPASS");
    EXPECT_NE(pool.trouble().find("redis cannot be reached: WRONGPASS"), std::string::npos) << pool.trouble();
    admin.command("ACL", "DELUSER", "ann");
    EXPECT_THROW(redis::connection(at(), {.database = 1000}), redis::server_error);
  });
}

TEST_P(Redis, AWaitForAReplyMayBeLeftAndMadeAgain) {
  in_runtime([] {
    redis::connection db(at()), other(at());
    db.send("BLPOP", "queue", 0);
    EXPECT_FALSE(db.receive_for(5ms));
    EXPECT_THROW(timeout(5ms, [&] { db.receive(); }), redis::late);
    EXPECT_FALSE(db.usable());
    EXPECT_THROW(db.command("PING"), usage_error);
    other.command("RPUSH", "queue", "item");
    const auto got = db.receive_for(60s);
    ASSERT_TRUE(got);
    EXPECT_EQ((*got)[1].text(), "item");
    EXPECT_TRUE(db.usable());
  });
}

TEST_P(Redis, PatienceEndsTheWaitForASilentServer) {
  in_runtime([] {
    redis::connection db(at(), {.patience = 10ms});
    const auto why = thrown_by<redis::connection_lost>([&] { db.command("BLPOP", "none", 0); });
    EXPECT_EQ(why.code(), std::errc::timed_out);
    EXPECT_TRUE(why.sent());
  });
}

TEST_P(Redis, FibersShareAPoolOfAFewConnections) {
  in_runtime([] {
    redis::pool pool(at(), {.size = 3});
    mutex guard;
    std::set<long long> answers;
    scope([&](task_group& clients) {
      for (int i = 0; i < 50; ++i)
        clients.spawn([&] {
          for (int turn = 0; turn < 20; ++turn) {
            const long long value = pool.command("INCR", "shared").integer();
            const std::lock_guard lock(guard);
            EXPECT_TRUE(answers.insert(value).second) << value;
          }
        });
    });
    EXPECT_EQ(answers.size(), 1000u);
    EXPECT_EQ(*answers.rbegin(), 1000);
    EXPECT_LE(pool.connects(), 3u);
    redis::connection look(at());
    EXPECT_LE(clients_of(look), 4);
  });
}

TEST_P(Redis, ALeaseThatWasNotHandedBackIsClosed) {
  in_runtime([] {
    redis::pool pool(at(), {.size = 1});
    {
      redis::pool::lease with = pool.acquire();
      with->send("MULTI");
      with->send("SET", "a", 1);
      EXPECT_THROW(with.hand_back(), usage_error);
      EXPECT_EQ(with->receive().text(), "OK");
      EXPECT_EQ(with->receive().text(), "QUEUED");
    }  // in a transaction
    EXPECT_EQ(pool.command("ECHO", "x").text(), "x");  // and not "QUEUED"
    EXPECT_EQ(pool.connects(), 2u);
    {
      redis::pool::lease with = pool.acquire();
      with->send("MULTI");
      with->send("SET", "a", 1);
      with->send("EXEC");
      with->receive();
      with->receive();
      EXPECT_EQ(with->receive()[0].text(), "OK");
      with.hand_back();
    }
    EXPECT_EQ(thrown_by<redis::server_error>([&] { pool.command("NOTHING"); }).code(), "ERR");
    EXPECT_EQ(pool.command("GET", "a").text(), "1");
    EXPECT_EQ(pool.connects(), 2u);
    EXPECT_THROW(redis::pool(at(), {.size = 0}), usage_error);
  });
}

TEST_P(Redis, AWaitForAConnectionEndsAndNothingWasSent) {
  in_runtime([] {
    redis::pool pool(at(), {.size = 1, .acquire_time = 20ms});
    std::unique_ptr<redis::pool::lease> with(new redis::pool::lease(pool.acquire()));
    const auto over = thrown_by<redis::connection_lost>([&] { pool.command("INCR", "n"); });
    EXPECT_FALSE(over.sent());
    EXPECT_NE(std::string(over.what()).find("no connection to redis became free"), std::string::npos) << over.what();
    EXPECT_FALSE(thrown_by<redis::late>([&] { timeout(1ms, [&] { pool.command("INCR", "n"); }); }).sent());
    redis::pool patient(at(), {.size = 1});
    std::unique_ptr<redis::pool::lease> held(new redis::pool::lease(patient.acquire()));
    auto waits = spawn([&] {
      EXPECT_FALSE(thrown_by<redis::stopped>([&] { patient.command("INCR", "n"); }).sent());
      EXPECT_THROW(this_fiber::check(), operation_cancelled);
    });
    wait_until_others_wait();
    waits.request_stop();
    waits.get();
    with.reset();
    held.reset();
    EXPECT_EQ(pool.command("INCR", "n").integer(), 1);
  });
}

TEST_P(Redis, ScriptsAreSentOnceAndAgainWhenTheServerHasForgottenThem) {
  in_runtime([] {
    redis::pool pool(at());
    const redis::script add("return redis.call('INCRBY', KEYS[1], ARGV[1]) + #ARGV");
    EXPECT_EQ(add.run(pool, {"n"}, 5).integer(), 6);
    EXPECT_EQ(add.run(pool, {"n"}, 5, "x", "y").integer(), 13);
    EXPECT_EQ(pool.command("SCRIPT", "EXISTS", add.sha())[0].integer(), 1);
    pool.command("SCRIPT", "FLUSH");
    EXPECT_EQ(add.run(pool, {"n"}, -10).integer(), 1);
    EXPECT_EQ(thrown_by<redis::server_error>([&] { add.run(pool, {"n"}, "x"); }).code(), "ERR");
    redis::connection one(at());
    for (std::size_t size = 0; size < 200; ++size) {  // over all paddings of SHA-1
      const redis::script any("return 1 --" + std::string(size, 'x'));
      EXPECT_EQ(one.command("SCRIPT", "LOAD", "return 1 --" + std::string(size, 'x')).text(), any.sha());
    }
    EXPECT_EQ(add.run(one, {"n"}, 0).integer(), 1);
  });
}

TEST_P(Redis, EntriesOfStreamsAreParsed) {
  in_runtime([] {
    redis::connection db(at());
    db.command("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM");
    const auto read = [&](std::string_view from) {
      const redis::reply got =
          db.command("XREADGROUP", "GROUP", "workers", "me", "COUNT", 10, "BLOCK", 1, "STREAMS", "jobs", from);
      return redis::streams_in(got);
    };
    EXPECT_TRUE(read(">").empty());
    const std::string first(db.command("XADD", "jobs", "*", "kind", "mail", "to", "ann").text());
    const std::string second(db.command("XADD", "jobs", "*", "kind", "print").text());
    const auto got = read(">");
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].first, "jobs");
    ASSERT_EQ(got[0].second.size(), 2u);
    EXPECT_EQ(got[0].second[0].id, first);
    EXPECT_EQ(got[0].second[0].field("to"), "ann");
    EXPECT_FALSE(got[0].second[1].field("to"));
    EXPECT_EQ(redis::entries_in(db.command("XRANGE", "jobs", "-", "+")).size(), 2u);
    EXPECT_EQ(db.command("XACK", "jobs", "workers", first).integer(), 1);
    db.command("XDEL", "jobs", second);
    const auto pending = read("0");  // what is deleted is still pending, without fields
    ASSERT_EQ(pending.at(0).second.size(), 1u);
    EXPECT_EQ(pending[0].second[0].id, second);
    EXPECT_TRUE(pending[0].second[0].fields.empty());
    EXPECT_THROW(redis::entries_in(db.command("PING")), redis::reply_error);
  });
}

TEST_P(Redis, RepeatCallsAgainAfterWhatPasses) {
  in_runtime([] {
    int calls = 0;
    EXPECT_EQ(redis::repeat([&] {
                if (++calls == 1) throw redis::connection_lost(std::make_error_code(std::errc::broken_pipe), "", true);
                if (calls == 2) throw redis::server_error("LOADING data");
                return calls;
              }),
              3);
    EXPECT_THROW(redis::repeat([] { throw redis::server_error("ERR no"); }), redis::server_error);
    EXPECT_THROW(timeout(50ms, [] { redis::repeat([] { throw redis::server_error("LOADING data"); }); }),
                 deadline_exceeded);
  });
}

TEST(RedisUnanswered, TellsWhyWhicheverExceptionItIs) {
  const auto words_of = [](const auto& thrown) {
    try {
      throw thrown;
    } catch (const redis::unanswered& why) {
      return std::string(why.sent() ? "sent: " : "not sent: ") + why.what();
    }
  };
  const redis::connection_lost lost(std::make_error_code(std::errc::broken_pipe), "sending", true);
  EXPECT_EQ(words_of(lost), "sent: sending: Broken pipe");
  EXPECT_EQ(words_of(redis::late(false)), std::string("not sent: ") + deadline_exceeded().what());
  EXPECT_EQ(words_of(redis::stopped(true)), std::string("sent: ") + operation_cancelled().what());
  EXPECT_STREQ(lost.what(), static_cast<const std::exception&>(lost).what());
}

}  // namespace
}  // namespace ulexite::test
