// interop/redis.hpp when things go wrong: servers that are killed, frozen or lie, and fibers that leave.

#include "redis_fixture.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/blocking.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace ulexite::test {
namespace {

class RedisFaults : public RedisTest {};
ULEXITE_REDIS_TEST(RedisFaults);

// Increments one counter again and again, and keeps count of what it was told.
struct increments {
  std::atomic<long long> done{0}, unknown{0}, not_sent{0};

  void once(redis::pool& pool, const std::string& name) {
    try {
      const deadline_scope patience(100ms);
      const long long value = pool.command("INCR", name).integer();
      EXPECT_GT(value, done.load());
      EXPECT_LE(value, done + unknown + 1);
      ++done;
    } catch (const redis::unanswered& why) {
      ++(why.sent() ? unknown : not_sent);
    } catch (const redis::server_error& why) {
      EXPECT_TRUE(why.may_succeed_later()) << why.what();  // it loads its data
      ++not_sent;
    }
  }
};

void await_more(const std::atomic<long long>& count, long long more) {
  wait_until([&count, enough = count + more] { return count >= enough; });
}

TEST_P(RedisFaults, WhatWasNotSentIsNotCountedWhenTheServerIsKilledUnderLoad) {
  in_runtime([] {
    redis::pool pool(at(), {.size = 4});
    std::array<increments, 8> all;
    std::atomic<bool> stop{false};
    scope([&](task_group& clients) {
      for (std::size_t i = 0; i < all.size(); ++i)
        clients.spawn([&, i] {
          while (!stop) all[i].once(pool, std::to_string(i));
        });
      for (int turn = 0; turn < 2; ++turn) {
        await_more(all[0].done, 20);
        blocking([] { server().kill(); });
        await_more(all[0].not_sent, 1);
        blocking([] { server().start(); });
      }
      await_more(all[0].done, 20);
      stop = true;
    });
    long long not_sent = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const long long value = std::stoll(std::string(pool.command("GET", i).text()));
      EXPECT_GE(value, all[i].done.load()) << i;
      EXPECT_LE(value, all[i].done + all[i].unknown) << i;
      not_sent += all[i].not_sent;
    }
    EXPECT_GT(not_sent, 0);
  });
}

TEST_P(RedisFaults, DeadlinesEndCommandsOfAFrozenServer) {
  in_runtime([] {
    redis::pool pool(at(), {.size = 2});
    EXPECT_EQ(pool.command("INCR", "n").integer(), 1);
    server().freeze();
    int sent = 0;
    for (int i = 0; i < 5; ++i)
      sent += thrown_by<redis::late>([&] { timeout(20ms, [&] { pool.command("INCR", "n"); }); }).sent();
    server().thaw();
    EXPECT_EQ(sent, 5);  // the kernel has them
    redis::repeat([&] { EXPECT_EQ(pool.command("ECHO", "own").text(), "own"); });
    // A server that goes on carries out what it has got, until it sees the end of the connection.
    EXPECT_LE(std::stoll(std::string(pool.command("GET", "n").text())), 1 + sent);
  });
}

TEST_P(RedisFaults, NobodyGetsTheReplyOfACommandThatWasLeft) {
  in_runtime([] {
    constexpr std::size_t size = 4;
    redis::pool pool(at(), {.size = size});
    std::atomic<int> answered{0}, left{0}, wrong{0};
    scope([&](task_group& clients) {
      for (int i = 0; i < 20; ++i)
        clients.spawn([&, i] {
          for (int turn = 0; turn < times(100); ++turn) {
            const std::string own = std::to_string(i) + "." + std::to_string(turn);
            const auto ask = [&] {
              try {
                ++(pool.command("ECHO", own).text() == own ? answered : wrong);
              } catch (const operation_cancelled&) {
                ++left;
              }
            };
            if (turn % 5 == 0) {
              ask();  // with all the time that it needs
            } else if (turn % 2 == 0) {
              timeout(std::chrono::microseconds(turn * 37 % 1500), ask);
            } else {
              auto other = spawn(ask);
              for (int k = turn % 30; k > 0; --k) this_fiber::yield();
              other.request_stop();
              other.join();
            }
          }
        });
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(answered, 20 * times(100) / 5);
    EXPECT_GT(left, 0);
    EXPECT_EQ(answered + left, 20 * times(100));
    redis::connection look(at());
    wait_until([&] { return clients_of(look) <= static_cast<long long>(size) + 1; });  // none is leaked
  });
}

TEST_P(RedisFaults, APoolConnectsAgainWhenTheServerHasEndedItsConnections) {
  in_runtime([] {
    std::vector<std::string> changes;
    redis::pool pool(at(), {.size = 1, .on_change = [&](std::string_view why) { changes.emplace_back(why); }});
    redis::connection admin(at());
    for (int i = 1; i <= 20; ++i) {
      EXPECT_EQ(pool.command("INCR", "n").integer(), i);
      admin.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      wait_until([&] { return clients_of(admin) == 1; });
    }
    EXPECT_EQ(pool.connects(), 20u);
    EXPECT_TRUE(changes.empty());
    blocking([] { server().kill(); });
    EXPECT_FALSE(thrown_by<redis::late>([&] { timeout(50ms, [&] { pool.command("PING"); }); }).sent());
    EXPECT_NE(pool.trouble().find("redis cannot be reached"), std::string::npos) << pool.trouble();
    blocking([] { server().start(); });
    redis::repeat([&] { pool.command("PING"); });
    ASSERT_EQ(changes.size(), 2u);
    EXPECT_NE(changes[0], "");
    EXPECT_EQ(changes[1], "");
  });
}

// ---- layers ----

// Passes everything on. With `breaks`, it says that a write has failed which has not.
struct through {
  net::tcp_stream& under;
  bool& breaks;
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
    return under.read_some(data, size, error);
  }
  std::size_t write(const void* data, std::size_t size, std::error_code& error) {
    const std::size_t written = under.write(data, size, error);
    if (!breaks || error) return written;
    error = std::make_error_code(std::errc::io_error);
    return 0;
  }
};

TEST_P(RedisFaults, WhatALayerHasWrittenIsUnknown) {
  in_runtime([] {
    bool breaks = false;
    redis::connection_options options;
    options.layer = [&](net::tcp_stream& under) {
      return std::make_unique<redis::layer_of<through>>(through{under, breaks});
    };
    redis::pool pool(at(), {.size = 1, .connection = options});
    EXPECT_EQ(pool.command("INCR", "n").integer(), 1);
    breaks = true;
    const auto why = thrown_by<redis::connection_lost>([&] { pool.command("INCR", "n"); });
    EXPECT_EQ(why.code(), std::errc::io_error);
    EXPECT_TRUE(why.sent());
    breaks = false;
    redis::connection look(at());
    wait_until([&] { return look.command("GET", "n").text() == "2"; });
    EXPECT_EQ(pool.command("INCR", "n").integer(), 3);  // it was not repeated
  });
}

// ---- servers that lie ----

// Runs `body(address)` while a server answers each portion of what it reads with `reply`, and ends when that is empty.
void with_liar(const std::string& reply, const std::function<void(const net::address&)>& body,
               std::size_t portion = 0) {
  net::tcp_listener listener(net::endpoint::ip("127.0.0.1", 0));
  task_group connections;
  auto server = spawn([&] {
    listener.serve(connections, [&](net::tcp_stream& client) {
      std::array<char, 1000> bytes;
      std::error_code error;
      while (client.read_some(bytes.data(), bytes.size(), error) != 0 && !error && !reply.empty())
        for (std::size_t at = 0; at < reply.size() && !error; at += portion) {
          if (portion == 0) portion = reply.size();
          client.write(std::string_view(reply).substr(at, portion), error);
        }
    });
  });
  body(net::address(listener.local_endpoint()));
  listener.close();
  server.get();
}

std::string refusal_of(const std::string& reply, redis::reply_limits limits = {}) {
  std::string refusal;
  with_liar(reply, [&](const net::address& liar) {
    redis::pool pool(liar, {.size = 1, .connection = {.patience = 60s, .limits = limits}});
    for (int i = 0; i < 2; ++i) refusal = thrown_by<redis::reply_error>([&] { pool.command("GET", "a"); }).what();
    EXPECT_EQ(pool.connects(), 2u);  // one that failed is not used again
  });
  return refusal.substr(refusal.rfind(": "));
}

TEST_P(RedisFaults, RepliesBeyondTheLimitsAreRefusedBeforeTheyTakeMemory) {
  in_runtime([] {
    EXPECT_EQ(refusal_of("*2000000000\r\n"), ": more than 1048576 elements");
    EXPECT_EQ(refusal_of("*1000000\r\n*1000000\r\n"), ": more than 1048576 elements");  // together
    EXPECT_EQ(refusal_of("$2000000000\r\n" + std::string(30'000, 'x'), {.bytes = 20'000}), ": more than 20000 bytes");
    std::string deep;
    for (int i = 0; i < 1000; ++i) deep += "*1\r\n";
    EXPECT_NE(refusal_of(deep), "");  // hiredis itself refuses them, or the limit does
    EXPECT_NE(refusal_of("HTTP/1.1 400 Bad Request\r\n\r\n"), "");
    EXPECT_EQ(refusal_of("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", {.elements = 2}), ": more than 2 elements");
  });
}

TEST_P(RedisFaults, RepliesComeInAnyPortions) {
  in_runtime([] {
    with_liar(
        "*2\r\n$5\r\nab\r\nc\r\n:-12\r\n",
        [](const net::address& liar) {
          redis::pool pool(liar, {.size = 1});
          for (int i = 0; i < 20; ++i) {
            const redis::reply got = pool.command("ANY");
            EXPECT_EQ(got[0].text(), "ab\r\nc");
            EXPECT_EQ(got[1].integer(), -12);
          }
          EXPECT_EQ(pool.connects(), 1u);
        },
        1);
  });
}

TEST_P(RedisFaults, AReplyThatNobodyAskedForIsTakenForNoOthers) {
  in_runtime([] {
    with_liar("+first\r\n+second\r\n", [](const net::address& liar) {
      redis::pool pool(liar, {.size = 1});
      for (int i = 0; i < 20; ++i) EXPECT_EQ(pool.command("ANY").text(), "first");
      EXPECT_EQ(pool.connects(), 20u);
    });
  });
}

TEST_P(RedisFaults, AServerThatEndsBeforeItRepliesLeavesTheOutcomeUnknown) {
  in_runtime([] {
    with_liar("", [](const net::address& liar) {
      redis::pool pool(liar, {.size = 1});
      const auto why = thrown_by<redis::connection_lost>([&] { pool.command("INCR", "n"); });
      EXPECT_TRUE(why.sent());
      EXPECT_EQ(pool.connects(), 1u);  // it was not repeated
    });
  });
}

}  // namespace
}  // namespace ulexite::test
