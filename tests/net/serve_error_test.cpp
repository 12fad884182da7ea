// tcp_listener::serve and the exceptions of handlers.

#include "serve_fixture.hpp"

#include "support/cancellation.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace ulexite::test {
namespace {

class ServeError : public ServeTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ServeError);

// The arguments of on_error.
class error_log {
 public:
  [[nodiscard]] net::serve_options options() {
    net::serve_options made;
    made.on_error = [this](const net::endpoint& peer, const std::exception_ptr& failure) {
      const std::lock_guard lock(guard_);
      peers_.push_back(peer);
      failures_.push_back(message_of([&] { std::rethrow_exception(failure); }));
    };
    return made;
  }
  [[nodiscard]] std::size_t size() {
    const std::lock_guard lock(guard_);
    return peers_.size();
  }
  [[nodiscard]] net::endpoint peer(std::size_t i) const { return peers_.at(i); }
  [[nodiscard]] std::string failure(std::size_t i) const { return failures_.at(i); }

 private:
  mutex guard_;
  std::vector<net::endpoint> peers_;
  std::vector<std::string> failures_;
};

// The client waits for one that can serve it.
TEST_P(ServeError, APlainThreadIsRefusedBeforeItAcceptsAClient) {
  in_runtime([] {
    net::tcp_listener listener(net::endpoint::ip("127.0.0.1", 0));
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    std::thread([&] {
      task_group none;
      try {
        listener.serve(none, echo);
        ADD_FAILURE() << "no error";
      } catch (const std::system_error& refused) {
        EXPECT_EQ(refused.code(), errc::no_runtime);
      }
    }).join();
    task_group connections;
    auto serving = spawn([&] { listener.serve(connections, echo); });
    expect_echo(client);
    client.close();
    listener.close();
    serving.get();
  });
}

TEST_P(ServeError, ExceptionsOfAHandlerReachOnErrorAndEndTheirConnectionOnly) {
  in_runtime([] {
    server failing;
    error_log errors;
    failing.start(
        [&](net::tcp_stream& stream) {
          char command = 0;
          while (stream.read_some(&command, 1) == 1) {
            if (command == 't') throw std::runtime_error("thrown");
            if (command == 'd') timeout(1ms, [] { wait_for_ever(); });
            if (command == 'c') {
              stream.close();
              throw std::runtime_error("thrown behind the close");
            }
            stream.write(&command, 1);
          }
        },
        errors.options());
    auto innocent = failing.client();
    const std::vector<std::pair<std::string, std::string>> cases{
        {"t", "thrown"}, {"d", deadline_exceeded().what()}, {"c", "thrown behind the close"}};
    for (std::size_t i = 0; i < cases.size(); ++i) {
      auto client = failing.client();
      const auto peer = client.local_endpoint();
      client.write(cases[i].first);
      EXPECT_EQ(read_all(client), "");
      wait_until([&] { return errors.size() == i + 1; });
      EXPECT_EQ(errors.failure(i), cases[i].second);
      EXPECT_EQ(errors.peer(i), peer);
      innocent.write("i");
      char answer = 0;
      EXPECT_EQ(innocent.read(&answer, 1), 1u) << "the others go on";
    }
    failing.close_and_join();
    EXPECT_EQ(errors.size(), cases.size());
    EXPECT_EQ(failing.group.failures(), 0u);
  });
}

TEST_P(ServeError, PeerOfAConnectionThatWasResetIsKnown) {
  in_runtime([] {
    server failing;
    error_log errors;
    event begun;
    failing.start(
        [&](net::tcp_stream& stream) {
          begun.set();
          echo(stream);
        },
        errors.options());
    auto client = failing.client();
    const auto peer = client.local_endpoint();
    begun.wait();
    client.abort();
    wait_until([&] { return errors.size() == 1; });
    EXPECT_EQ(errors.peer(0), peer);
    EXPECT_NE(errors.failure(0).find("reset"), std::string::npos) << errors.failure(0);
    failing.close_and_join();
  });
}

TEST_P(ServeError, OnlyWhatClientsDoNotBringAboutIsPrinted) {
  in_runtime([] {
    server failing;
    failing.start([](net::tcp_stream& stream) {
      echo(stream);  // meets the reset
      throw std::runtime_error("the handler's own");
    });
    testing::internal::CaptureStderr();
    auto resetting = failing.client(), ending = failing.client();
    expect_echo(resetting);
    resetting.abort();
    const std::string peer = ending.local_endpoint().str();
    ending.shutdown_write();
    EXPECT_EQ(read_all(ending), "");
    wait_until([&] { return failing.group.size() == 0; });  // the close must not end the read before the reset does
    failing.close_and_join();
    const std::string printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find(peer + " failed: the handler's own"), std::string::npos) << printed;
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
  });
}

}  // namespace
}  // namespace ulexite::test
