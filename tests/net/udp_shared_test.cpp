// Many senders and receivers of one datagram socket at the same time.

#include "udp_fixture.hpp"

#include "support/waiting.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <thread>

namespace ulexite::test {
namespace {

class UdpShared : public UdpTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(UdpShared);

// A pair of Unix sockets loses no datagram, and holds few: a sender waits when these are unread.
struct datagram_pair {
  datagram_pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    left = net::udp_socket::adopt(ends[0]);
    right = net::udp_socket::adopt(ends[1]);
    left.expires_after(bound);
    right.expires_after(bound);
  }
  net::udp_socket left, right;
};

constexpr int users = 16, datagrams_each = 300;

// Counts the number that `text` holds.
void count(std::vector<std::atomic<int>>& received, std::string_view text) {
  std::size_t number = received.size();
  std::from_chars(text.data(), text.data() + text.size(), number);
  ASSERT_LT(number, received.size()) << text;
  ++received[number];
}

void send_numbers(net::udp_socket& from, int sender) {
  for (int i = 0; i < datagrams_each; ++i) from.send(std::to_string(sender * datagrams_each + i));
}

TEST_P(UdpShared, EachDatagramOfManySendersGoesToOneOfManyReceivers) {
  in_runtime([] {
    datagram_pair pair;
    std::vector<std::atomic<int>> received(users * datagrams_each);
    task_group all;
    for (int user = 0; user < users; ++user) {
      all.spawn([&, user] { send_numbers(pair.left, user); });
      all.spawn([&] {
        for (int i = 0; i < datagrams_each; ++i) count(received, receive_text(pair.right));
      });
    }
    all.wait();
    for (const auto& each : received) EXPECT_EQ(each, 1);
  });
}

// Threads and fibers, each of which waits in its own way.
TEST_P(UdpShared, PlainThreadsTakeTurnsWithFibers) {
  in_runtime([] {
    datagram_pair pair;
    std::vector<std::atomic<int>> received(users * datagrams_each);
    const auto receive = [&] {
      for (int i = 0; i < users / 4 * datagrams_each; ++i) count(received, receive_text(pair.right));
    };
    std::thread first(receive), second(receive);
    task_group all;
    for (int i = 0; i < 2; ++i) all.spawn(receive);
    for (int user = 0; user < users; ++user) all.spawn([&, user] { send_numbers(pair.left, user); });
    all.wait();
    blocking([&] {
      first.join();
      second.join();
    });
    for (const auto& each : received) EXPECT_EQ(each, 1);
  });
}

// As a server answers.
TEST_P(UdpShared, ManyFibersSendOverUdp) {
  in_runtime([] {
    auto server = bounded(), sink = bounded();
    task_group all;
    std::atomic<int> sent{0};
    for (int user = 0; user < users; ++user)
      all.spawn([&] {
        std::error_code error;
        for (int i = 0; i < datagrams_each; ++i) {
          server.send_to("answer", sink.local_endpoint(), error);
          EXPECT_FALSE(error) << error.message();
          sent += !error;
        }
      });
    all.wait();
    EXPECT_EQ(sent, users * datagrams_each);
    EXPECT_EQ(receive_text(sink), "answer");
  });
}

TEST_P(UdpShared, WaitersEndBeforeTheirTurn) {
  in_runtime([] {
    auto socket = bounded();
    std::vector<join_handle<std::error_code>> waiters;
    for (int i = 0; i < users; ++i) waiters.push_back(spawn([&] { return receive_code(socket); }));
    auto late = spawn([&] {
      const deadline_scope limit(1ms);
      return receive_code(socket);
    });
    EXPECT_EQ(late.get(), errc::deadline_exceeded);
    wait_until_others_wait();
    EXPECT_THROW((void)socket.release(), usage_error);
    for (const int stopped : {0, 3, 7}) {
      waiters[stopped].request_stop();
      EXPECT_EQ(waiters[stopped].get(), errc::cancelled);
    }
    for (int i = 0; i < 3; ++i) socket.send_to("x", socket.local_endpoint());
    const auto has_got = [](const auto& each) { return each.joinable() && each.done(); };
    while (std::ranges::count_if(waiters, has_got) < 3) this_fiber::sleep_for(100us);
    socket.close();
    int got = 0, closed = 0;
    for (auto& each : waiters) {
      if (!each.joinable()) continue;
      const std::error_code end = each.get();
      got += !end;
      closed += end == std::errc::bad_file_descriptor;
    }
    EXPECT_EQ(got, 3);
    EXPECT_EQ(closed, users - 6);
  });
}

// The runtime that watches the socket ends, with a fiber that has the turn.
TEST_P(UdpShared, AThreadReceivesAfterAnAbandonedFiber) {
  auto socket = bounded();
  {
    runtime first({.threads = static_cast<unsigned>(GetParam())});
    for (int i = 0; i < 3; ++i) first.spawn([&] { receive_text(socket); }).detach();
    wait_until_all_wait(first);
    std::atomic<bool> begun{false};
    std::string got;
    std::thread thread([&] {
      begun = true;
      got = receive_text(socket);
    });
    while (!begun) std::this_thread::yield();
    EXPECT_EQ(first.shutdown(shutdown_mode::abandon), 3u);
    socket.send_to("x", socket.local_endpoint());
    thread.join();
    EXPECT_EQ(got, "x");
  }
  socket.send_to("y", socket.local_endpoint());
  EXPECT_EQ(receive_text(socket), "y");
  socket.close();
}

// While many use it, in every state of their waits.
TEST_P(UdpShared, ACloseAndManyStopsLeaveNothing) {
  in_runtime([] {
    for (int round = 0; round < 100; ++round) {
      datagram_pair pair;
      task_group group;
      for (int i = 0; i < 6; ++i) {
        group.spawn([&] {
          std::error_code error;
          for (char text[10]; !error;) pair.right.receive(text, sizeof text, error);
        });
        group.spawn([&] {
          std::error_code error;
          while (!error) pair.left.send("x", error);
        });
      }
      for (int i = 0; i < round % 7; ++i) this_fiber::yield();
      if (round % 2) group.request_stop();
      pair.left.close();
      pair.right.close();
      try {
        group.wait();
      } catch (const operation_cancelled&) {
      }
    }
  });
}

}  // namespace
}  // namespace ulexite::test
