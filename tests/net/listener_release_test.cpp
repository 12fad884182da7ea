// Listeners from other processes, or for other processes.

#include "net_fixture.hpp"

#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <string>

namespace ulexite::test {
namespace {

using net::tcp_listener;
using net::tcp_stream;

class ListenerReleaseTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ListenerReleaseTest);

void answer(tcp_stream& stream, const char* text) {
  char byte;
  stream.read_some(&byte, 1);
  stream.write(text);
  stream.shutdown_write();
}

std::string ask(const net::endpoint& whom) {
  auto stream = tcp_stream::connect(whom);
  stream.expires_after(bound);
  stream.write("?");
  return read_all(stream);
}

TEST_P(ListenerReleaseTest, TheNextOwnerAcceptsWhatIsInTheBacklog) {
  in_runtime([] {
    tcp_listener first(loopback());
    const auto at = first.local_endpoint();
    auto waiting = tcp_stream::connect(at);
    const int fd = first.release();
    ASSERT_GE(fd, 0);
    EXPECT_FALSE(first.is_open());
    EXPECT_EQ(first.release(), -1);
    auto second = tcp_listener::adopt(fd);
    EXPECT_EQ(second.local_endpoint(), at);
    net::endpoint peer;
    auto accepted = second.accept(peer);
    EXPECT_EQ(peer, waiting.local_endpoint());
    accepted.write("hello");
    accepted.shutdown_write();
    EXPECT_EQ(read_all(waiting), "hello");
    EXPECT_EQ(accepted.option(IPPROTO_TCP, TCP_NODELAY), 1);
  });
}

// As a restart does it: each client gets an answer, of the old server or of the new one.
TEST_P(ListenerReleaseTest, ServersTakeTurnsAndLoseNoRequest) {
  in_runtime([] {
    tcp_listener listener(loopback());
    const auto at = listener.local_endpoint();
    std::atomic<bool> over = false;
    std::atomic<int> answers = 0;
    scope([&](task_group& clients) {
      for (int i = 0; i < 4; ++i)
        clients.spawn([&] {
          while (!over) {
            EXPECT_EQ(ask(at), "answer");
            ++answers;
          }
        });
      for (int generation = 0; generation < 5; ++generation) {
        task_group connections;
        auto serving =
            spawn([&] { listener.serve(connections, [](tcp_stream& stream) { answer(stream, "answer"); }); });
        const int wanted = answers + 20;
        while (answers < wanted) this_fiber::yield();
        const int fd = listener.release();
        serving.join();
        listener = tcp_listener::adopt(fd);
      }
      over = true;
      task_group connections;
      auto serving = spawn([&] { listener.serve(connections, [](tcp_stream& stream) { answer(stream, "answer"); }); });
      clients.wait();
      listener.close();
      serving.join();
    });
  });
}

TEST_P(ListenerReleaseTest, AWaitingAcceptEnds) {
  in_runtime([] {
    tcp_listener listener(loopback());
    auto accepting = spawn([&] {
      std::error_code error;
      static_cast<void>(listener.accept(error));
      EXPECT_EQ(error, std::errc::bad_file_descriptor);
    });
    let_others_run();
    auto next = tcp_listener::adopt(listener.release());
    accepting.join();
    EXPECT_TRUE(listener.closing_token().stop_requested());
    auto client = tcp_stream::connect(next.local_endpoint());
    EXPECT_TRUE(next.accept().is_open());
  });
}

TEST_P(ListenerReleaseTest, TheLastOwnerOfAPathDoesNotRemoveIt) {
  in_runtime([] {
    const auto path = scratch_path("release");
    tcp_listener first(net::endpoint::local(path));
    {
      const auto second = tcp_listener::adopt(first.release());
      EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_TRUE(std::filesystem::exists(path));
    std::filesystem::remove(path);
  });
}

// As systemd does: its socket must go on for the next process.
TEST_P(ListenerReleaseTest, AnAdoptedSocketGoesOnInOtherProcesses) {
  in_runtime([] {
    tcp_listener first(loopback());
    const auto at = first.local_endpoint();
    const int of_other = ::fcntl(first.native_handle(), F_DUPFD_CLOEXEC, 0);
    auto listener = tcp_listener::adopt(first.release());
    tcp_listener moved;
    moved = std::move(listener);
    task_group connections;
    auto serving = spawn([&] { moved.serve(connections, [](tcp_stream& stream) { answer(stream, "first"); }); });
    EXPECT_EQ(ask(at), "first");
    moved.close();
    serving.join();
    auto next = tcp_listener::adopt(of_other);
    auto asking = spawn([&] { EXPECT_EQ(ask(at), "next"); });
    auto accepted = next.accept();
    answer(accepted, "next");
    asking.get();
  });
}

TEST(ListenerRelease, ARefusedDescriptorStaysOpen) {
  const int plain = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int fd : {plain, datagrams, file}) {
    try {
      static_cast<void>(tcp_listener::adopt(fd));
      FAIL() << "fd " << fd << " does not listen";
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find("adopting fd " + std::to_string(fd)), std::string::npos);
    }
    EXPECT_EQ(::close(fd), 0);
  }
  EXPECT_THROW(static_cast<void>(tcp_listener::adopt(-1)), std::system_error);
}

}  // namespace
}  // namespace ulexite::test
