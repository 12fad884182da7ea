// The process runs out of descriptors in the midst of everything, and gets some again.

#include "abuse.hpp"

#include <optional>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseScarcity : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseScarcity);

// No server accepts beside it. An accept reserves a descriptor before it looks for a connection, and returns it if
// there is none: perhaps just after all others were taken.
TEST_P(AbuseScarcity, ConnectListenAndARuntimeSayWhatIsMissingAndRecover) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    for (int i = 0; i < times(100); ++i) {
      {
        const hoard everything;
        std::error_code error;
        EXPECT_FALSE(net::tcp_stream::connect(listener.local_endpoint(), {}, error).is_open());
        EXPECT_EQ(error, std::errc::too_many_files_open);
        EXPECT_EQ(code_of([&] { net::tcp_listener another(loopback()); }), std::errc::too_many_files_open);
        EXPECT_EQ(code_of([] { runtime another({.threads = 1}); }), std::errc::too_many_files_open);
      }
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      auto server = listener.accept();
      client.write("x");
      char c = 0;
      EXPECT_EQ(server.read_some(&c, 1), 1u);
      EXPECT_EQ(c, 'x');
    }
  });
}

// One listener, twice without descriptors. With them there is no line.
TEST_P(AbuseScarcity, AListenerSaysOnceThatItLacksDescriptors) {
  testing::internal::CaptureStderr();
  std::string where;
  in_runtime([&] {
    net::tcp_listener listener(loopback());
    where = listener.local_endpoint().str();
    const auto refused = [] { return current_runtime().metrics().accepts_refused; };
    for (int i = 0; i < 3; ++i) {
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      std::optional<hoard> everything;
      if (i > 0) everything.emplace();
      const std::uint64_t before = refused();
      EXPECT_EQ(before > 0, i == 2);
      auto acceptor = spawn([&] { EXPECT_TRUE(listener.accept().is_open()); });
      if (everything) wait_until([&] { return refused() > before + 1; });
      everything.reset();
      acceptor.join();
    }
  });
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string line = "ulexite: accepting at " + where + ": Too many open files; ";
  const std::size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(line, at + 1), std::string::npos) << text;
}

// The backlog holds the clients during this time; each is served in the end.
TEST_P(AbuseScarcity, AServerOutlastsAWantOfDescriptors) {
  in_runtime([] {
    const service server(echo);
    std::vector<net::tcp_stream> clients;
    hoard most(40);
    for (std::error_code error; !error;) {  // each takes one here, and one of the server's as long as there are any
      auto client = net::tcp_stream::connect(server.at(), {}, error);
      if (!error) clients.push_back(std::move(client));
    }
    EXPECT_GE(clients.size(), 20u);
    for (auto& client : clients) client.write("is anybody there?");
    most.give(1);  // for the first client, if none has been accepted
    task_group waiting;
    for (auto& client : clients)  // all at a time: in which order they are accepted is the system's affair
      waiting.spawn([&client] {
        char answer[17];
        EXPECT_EQ(client.read(answer, sizeof answer), sizeof answer);
        client.close();  // who leaves gives two
      });
    waiting.wait();
  });
}

// All descriptors are taken, and given back, again and again, while clients come and go. A failed call is tried again.
TEST_P(AbuseScarcity, ClientsThatTryAgainAllGetThrough) {
  in_runtime([] {
    const service server(echo);
    task_group clients;
    for (int i = 0; i < 10; ++i)
      clients.spawn([&] {
        for (int left = times(100); left > 0;) {
          std::error_code error;
          auto stream = net::tcp_stream::connect(server.at(), {}, error);
          if (error) {
            ASSERT_EQ(error, std::errc::too_many_files_open);
            this_fiber::sleep_for(100us);
            continue;
          }
          char c = 'x';
          stream.write(&c, 1);
          ASSERT_EQ(stream.read_some(&c, 1), 1u);
          --left;
        }
      });
    while (clients.size() > 0) {
      {
        const hoard everything(detail::random_below(3));
        yield_times(detail::random_below(30));
      }
      yield_times(detail::random_below(30));
    }
    clients.wait();
  });
}

}  // namespace
}  // namespace ulexite::test
