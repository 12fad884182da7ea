#include "net_fixture.hpp"

#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/parallel_context.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <stdexcept>

namespace ulexite::test {
namespace {

class ServeInContext : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ServeInContext);

// Ten clients say their numbers, and get them back.
void visit(const net::endpoint& at) {
  std::vector<join_handle<>> clients;
  for (int i = 0; i < 10; ++i)
    clients.push_back(spawn([&at, i] {
      auto stream = net::tcp_stream::connect(at, {.timeout = bound});
      const std::string sent = std::to_string(i) + "\n";
      stream.write(sent.data(), sent.size());
      char back[8];
      std::size_t got = 0;
      while (got < sent.size()) got += stream.read_some(back + got, sizeof back - got);
      EXPECT_EQ(std::string_view(back, got), sent);
    }));
  for (auto& client : clients) client.get();
}

template <class Context>
void serve_and_visit(Context& context, std::function<void()> served) {
  net::tcp_listener listener(loopback());
  auto server = spawn([&] {
    listener.serve(context, [&](net::tcp_stream& stream) {
      char part[64];
      while (const std::size_t got = stream.read_some(part, sizeof part)) {
        served();
        stream.write(part, got);
      }
    });
  });
  visit(listener.local_endpoint());
  listener.close();
  server.get();
}

TEST_P(ServeInContext, ConnectionsShareDataWithoutALock) {
  in_runtime([] {
    concurrent_context context("connections");
    int requests = 0;
    std::atomic<int> inside{0};
    serve_and_visit(context, [&] {
      EXPECT_EQ(++inside, 1);
      ++requests;
      --inside;
    });
    EXPECT_EQ(requests, 10);
  });
}

TEST_P(ServeInContext, ConnectionsHaveWorkersOfTheirOwn) {
  in_runtime([] {
    parallel_context context("servers", 2);
    std::atomic<int> elsewhere{0};
    serve_and_visit(context, [&] { elsewhere += &current_runtime() == &context.runtime(); });
    EXPECT_EQ(elsewhere, 10);
  });
}

TEST_P(ServeInContext, AStopReachesIt) {
  in_runtime([] {
    concurrent_context context;
    net::tcp_listener listener(loopback());
    auto server = spawn([&] { listener.serve(context, [](net::tcp_stream&) {}); });
    auto client = net::tcp_stream::connect(listener.local_endpoint(), {.timeout = bound});
    server.request_stop();
    EXPECT_THROW(server.get(), operation_cancelled);
  });
}

TEST_P(ServeInContext, ADeadlineReachesIt) {
  in_runtime([] {
    concurrent_context context;
    net::tcp_listener listener(loopback());
    EXPECT_THROW(timeout(20ms, [&] { listener.serve(context, [](net::tcp_stream&) {}); }), deadline_exceeded);
  });
}

// The failure of a sibling ends it too, and a shield keeps it from hearing a stop.
TEST_P(ServeInContext, TheEndOfItsScopeReachesIt) {
  in_runtime([] {
    concurrent_context context;
    net::tcp_listener listener(loopback());
    EXPECT_THROW(scope([&](task_group& group) {
                   group.spawn([] { throw std::runtime_error("broke"); });
                   listener.serve(context, [](net::tcp_stream&) {});
                 }),
                 std::runtime_error);
    net::tcp_listener shielded(loopback());
    auto server = spawn([&] {
      const shield deaf;
      shielded.serve(context, [](net::tcp_stream&) {});
    });
    server.request_stop();
    let_others_run();
    EXPECT_FALSE(server.done());
    shielded.close();
    server.get();
  });
}

}  // namespace
}  // namespace ulexite::test
