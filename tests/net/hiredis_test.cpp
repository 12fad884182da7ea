// hiredis over the waits of a fiber: its asynchronous contexts, and its synchronous ones in non-blocking mode.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <array>
#include <memory>

namespace ulexite::test {
namespace {

template <auto Free>
struct free_with {
  void operator()(auto* what) const noexcept { Free(what); }
};
using owned_reply = std::unique_ptr<redisReply, free_with<freeReplyObject>>;
using owned_context = std::unique_ptr<redisContext, free_with<redisFree>>;

// A server of one client that knows ECHO (a text), COUNT (a number, one more each time) and HANG (no reply). All else
// is an error.
void serve_redis(net::tcp_stream& client) {
  const std::unique_ptr<redisReader, free_with<redisReaderFree>> reader(redisReaderCreate());
  int counted = 0;
  client.expires_after(bound);
  for (std::array<char, 1000> bytes; const std::size_t got = client.read_some(bytes.data(), bytes.size());) {
    redisReaderFeed(reader.get(), bytes.data(), got);
    std::string answers;
    for (void* next = nullptr; redisReaderGetReply(reader.get(), &next) == REDIS_OK && next != nullptr;) {
      const owned_reply command(static_cast<redisReply*>(next));
      const std::string name = command->element[0]->str;
      if (name == "ECHO") answers += "+" + std::string(command->element[1]->str) + "\r\n";
      if (name == "COUNT") answers += ":" + std::to_string(++counted) + "\r\n";
      if (name == "WRONG") answers += "-ERR wrong\r\n";
    }
    client.write(answers);
  }
}

// Runs `body(port)` while a server listens there.
template <class Body>
void with_server(Body body) {
  net::tcp_listener listener(loopback());
  task_group connections;
  auto server = spawn([&] { listener.serve(connections, serve_redis); });
  timeout(bound, [&] { body(listener.local_endpoint().port()); });
  listener.close();
  server.get();
}

class Hiredis : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(Hiredis);

// ---- asynchronous: hiredis calls back ----

// The events that hiredis waits for, and whether it has ended.
struct event_source {
  bool read = false, write = false, ended = false;
};

template <bool event_source::* Which, bool Value>
void set(void* source) {
  static_cast<event_source*>(source)->*Which = Value;
}

// Connected when wait_for has first been called with it. Ends itself by redisAsyncDisconnect.
redisAsyncContext* connect_async(std::uint16_t port, event_source& source) {
  redisAsyncContext* const made = redisAsyncConnect("127.0.0.1", port);
  made->ev.data = &source;  // newer versions have more members, which stay null
  made->ev.addRead = &set<&event_source::read, true>;
  made->ev.delRead = &set<&event_source::read, false>;
  made->ev.addWrite = &set<&event_source::write, true>;
  made->ev.delWrite = &set<&event_source::write, false>;
  made->ev.cleanup = &set<&event_source::ended, true>;
  redisAsyncSetConnectCallback(made, [](const redisAsyncContext*, int) {});  // wants the notification: begins to write
  return made;
}

// Lets hiredis work until `condition()`.
template <class Condition>
void run_until(redisAsyncContext* context, event_source& source, Condition condition) {
  while (!condition()) {
    const auto wanted = (source.read ? net::interest::read : net::interest::none) |
                        (source.write ? net::interest::write : net::interest::none);
    const auto ready = net::wait_fd(context->c.fd, wanted);
    if ((ready & net::interest::write) != net::interest::none) redisAsyncHandleWrite(context);
    if (source.ended) return;
    if ((ready & net::interest::read) != net::interest::none) redisAsyncHandleRead(context);
    if (source.ended) return;
  }
}

TEST_P(Hiredis, AnAsynchronousContextRunsInAFiber) {
  in_runtime([] {
    with_server([](std::uint16_t port) {
      event_source source;
      std::vector<long long> counted;
      redisAsyncContext* const context = connect_async(port, source);
      for (int i = 0; i < 1000; ++i)
        redisAsyncCommand(
            context,
            [](redisAsyncContext*, void* reply, void* to) {
              static_cast<std::vector<long long>*>(to)->push_back(static_cast<redisReply*>(reply)->integer);
            },
            &counted, "COUNT");
      run_until(context, source, [&] { return counted.size() == 1000; });
      for (std::size_t i = 0; i < counted.size(); ++i) EXPECT_EQ(counted[i], static_cast<long long>(i + 1));
      redisAsyncDisconnect(context);
      EXPECT_TRUE(source.ended);
    });
  });
}

TEST_P(Hiredis, AnAsynchronousContextTellsOfARefusal) {
  in_runtime([] {
    const refusing_port refusing;
    event_source source;
    redisAsyncContext* const context = connect_async(refusing.at().port(), source);
    int status = REDIS_OK;
    context->data = &status;
    context->onConnect = [](const redisAsyncContext* of, int result) { *static_cast<int*>(of->data) = result; };
    timeout(bound, [&] { run_until(context, source, [] { return false; }); });
    EXPECT_TRUE(source.ended);
    EXPECT_EQ(status, REDIS_ERR);
  });
}

// ---- synchronous, in non-blocking mode: the fiber calls ----

owned_context connect(std::uint16_t port) {
  owned_context made(redisConnectNonBlock("127.0.0.1", port));
  net::wait_fd(made->fd, net::interest::write);
  return made;
}

void send(redisContext* to) {
  for (int done = 0; redisBufferWrite(to, &done) == REDIS_OK && done == 0;) net::wait_fd(to->fd, net::interest::write);
}

owned_reply receive(redisContext* from) {
  for (;;) {
    void* reply = nullptr;
    EXPECT_EQ(redisGetReplyFromReader(from, &reply), REDIS_OK);
    if (reply != nullptr) return owned_reply(static_cast<redisReply*>(reply));
    net::wait_fd(from->fd, net::interest::read);
    if (redisBufferRead(from) != REDIS_OK) return nullptr;
  }
}

TEST_P(Hiredis, ManyFibersEachWithAContextOfItsOwn) {
  in_runtime([] {
    with_server([](std::uint16_t port) {
      scope([&](task_group& clients) {
        for (int i = 0; i < 10; ++i) {
          clients.spawn([port, i] {
            const owned_context redis = connect(port);
            const std::string text(static_cast<std::size_t>(100 * i + 1), 'x');
            for (int round = 1; round <= 20; ++round) {
              redisAppendCommand(redis.get(), "ECHO %s", text.c_str());
              redisAppendCommand(redis.get(), "COUNT");
              redisAppendCommand(redis.get(), "WRONG");
              send(redis.get());
              EXPECT_EQ(receive(redis.get())->str, text);
              EXPECT_EQ(receive(redis.get())->integer, round);
              EXPECT_EQ(receive(redis.get())->type, REDIS_REPLY_ERROR);
            }
          });
        }
      });
    });
  });
}

TEST_P(Hiredis, ADeadlineEndsTheWaitForAReply) {
  in_runtime([] {
    with_server([](std::uint16_t port) {
      const owned_context redis = connect(port);
      redisAppendCommand(redis.get(), "HANG");
      send(redis.get());
      EXPECT_THROW(timeout(10ms, [&] { receive(redis.get()); }), deadline_exceeded);
    });
  });
}

}  // namespace
}  // namespace ulexite::test
