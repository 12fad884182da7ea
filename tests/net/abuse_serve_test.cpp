// serve with connections that it cannot serve.

#include "abuse.hpp"

#include <vector>

namespace ulexite::test {
namespace {

class AbuseServe : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseServe);

// A connection that waits for a fiber does not keep a closed listener from draining.
TEST_P(AbuseServe, AWantOfFibersDoesNotOutlastTheClose) {
  in_runtime(
      [] {
        const std::size_t before = open_descriptors();
        net::tcp_listener listener(loopback());
        task_group group;
        std::atomic<int> handled{0};
        auto serving = spawn([&] {
          listener.serve(group,
                         [&](net::tcp_stream&) {
                           ++handled;
                           this_fiber::sleep_for(1h);
                         },
                         {.drain_time = 10ms});
        });
        std::vector<net::tcp_stream> clients;
        for (int i = 0; i < 3; ++i) clients.push_back(net::tcp_stream::connect(listener.local_endpoint()));
        wait_until([&] { return handled == 2; });
        wait_until([&] { return open_descriptors() == before + 1 + 2 * clients.size(); });  // the third is accepted
        listener.close();
        EXPECT_TRUE(serving.wait_for(bound)) << "the drain time is over, and serve has not begun to drain";
        serving.request_stop();
        serving.join();
      },
      {.max_fibers = 4});
}

// A handler asks for the name of a client that has disconnected, or ends its own side after that.
TEST_P(AbuseServe, AHandlerThatFindsItsClientGoneIsNoNews) {
  testing::internal::CaptureStderr();
  in_runtime([] {
    for (const bool asks_for_the_name : {true, false}) {
      net::tcp_listener listener(loopback());
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      net::wait_fd(listener.native_handle(),
                   net::interest::read);  // an early reset would leave no connection to accept
      client.abort();
      std::atomic<bool> handled{false};
      task_group group;
      auto serving = spawn([&] {
        listener.serve(group, [&](net::tcp_stream& stream) {
          handled = true;
          if (asks_for_the_name) EXPECT_NE(stream.remote_endpoint(), net::endpoint());
          stream.shutdown_write();
        });
      });
      wait_until([&] { return handled.load(); });
      listener.close();
      serving.join();
    }
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace ulexite::test
