// Waiting for any of several descriptors, as client libraries do.

#include "descriptor_ends.hpp"
#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <algorithm>
#include <thread>
#include <vector>

namespace ulexite::test {
namespace {

using net::fd_interest;
using net::interest;

class WaitAny : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(WaitAny);

std::vector<fd_interest> readers_of(const std::vector<ends>& pipes) {
  std::vector<fd_interest> fds;
  for (const ends& each : pipes) fds.push_back({each.fd[0], interest::read});
  return fds;
}

TEST_P(WaitAny, TellsWhichOneBecameReady) {
  in_runtime([] {
    std::vector<ends> pipes;
    for (int i = 0; i < 50; ++i) pipes.push_back(ends::pipe());
    auto fds = readers_of(pipes);
    for (std::size_t chosen : {0, 49, 25, 25, 7}) {
      auto writer = spawn([&] { pipes[chosen].send(); });
      EXPECT_EQ(net::wait_any(fds), 1u);
      for (std::size_t i = 0; i < fds.size(); ++i)
        EXPECT_EQ(fds[i].ready, i == chosen ? interest::read : interest::none) << i;
      pipes[chosen].receive();
      writer.join();
    }
  });
}

TEST_P(WaitAny, TellsAllThatAreReady) {
  in_runtime([] {
    std::vector<ends> pipes;
    for (int i = 0; i < 5; ++i) pipes.push_back(ends::pipe());
    auto fds = readers_of(pipes);
    pipes[1].send();
    pipes[4].send();
    EXPECT_EQ(net::wait_any(fds), 2u);
    EXPECT_EQ(fds[1].ready, interest::read);
    EXPECT_EQ(fds[4].ready, interest::read);
  });
}

TEST_P(WaitAny, TellsDirectionsApart) {
  in_runtime([] {
    const auto pair = ends::sockets();
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read_write), interest::write);
    pair.send();
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read_write), interest::read_write);
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read), interest::read);
    pair.fill();
    auto reader = spawn([&] {
      char block[4096];
      while (::read(pair.fd[0], block, sizeof block) > 0) {
      }
    });
    EXPECT_EQ(net::wait_fd(pair.fd[1], interest::read_write), interest::write);
    reader.join();
  });
}

TEST_P(WaitAny, OneDescriptorSeveralTimes) {
  in_runtime([] {
    const auto pair = ends::sockets();
    fd_interest fds[] = {{pair.fd[0], interest::read}, {pair.fd[0], interest::read}, {pair.fd[0], interest::none}};
    auto writer = spawn([&] { pair.send(); });
    EXPECT_GE(net::wait_any(fds), 1u);  // the byte may come while poll(2) is between the first and the second
    writer.join();
    EXPECT_EQ(net::wait_any(fds), 2u);
    EXPECT_EQ(fds[0].ready, interest::read);
    EXPECT_EQ(fds[1].ready, interest::read);
    EXPECT_EQ(fds[2].ready, interest::none);
  });
}

TEST_P(WaitAny, TheDeadlineEndsIt) {
  in_runtime([] {
    const auto pair = ends::pipe();
    fd_interest fds[] = {{pair.fd[0], interest::read, interest::read}};
    EXPECT_EQ(net::wait_any(fds, steady_clock::now() + 2ms), 0u);
    EXPECT_EQ(fds[0].ready, interest::none);
    EXPECT_EQ(net::wait_any(std::span<fd_interest>(), steady_clock::now() + 1ms), 0u);
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read, steady_clock::now() - 1s), interest::none);
    pair.send();
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read, steady_clock::now() - 1s), interest::read);
  });
}

TEST_P(WaitAny, AStopEndsIt) {
  in_runtime([] {
    const auto a = ends::pipe(), b = ends::pipe();
    auto waiter = spawn([&] {
      fd_interest fds[] = {{a.fd[0], interest::read}, {b.fd[1], interest::read}};
      net::wait_any(fds);
    });
    waiter.request_stop();
    EXPECT_THROW(waiter.get(), operation_cancelled);
    EXPECT_THROW(timeout(1ms, [&] { net::wait_fd(a.fd[0], interest::read); }), deadline_exceeded);
  });
}

TEST_P(WaitAny, WhatIsNotOpenIsNamed) {
  in_runtime([] {
    const auto pair = ends::pipe();
    fd_interest fds[] = {{pair.fd[0], interest::read}, {-1, interest::write}};
    try {
      net::wait_any(fds);
      ADD_FAILURE() << "it waited";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
      EXPECT_NE(std::string(error.what()).find("write fd -1"), std::string::npos) << error.what();
    }
  });
}

TEST_P(WaitAny, AHangUpMakesReady) {
  in_runtime([] {
    auto pair = ends::sockets();
    auto closer = spawn([&] { pair.shut(1); });
    EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read), interest::read);
    closer.join();
  });
}

// Edges may be early, late or useless: each byte is waited for and found.
TEST_P(WaitAny, NothingIsLostBetweenManyWriters) {
  in_runtime([] {
    constexpr int rounds = 300, writers = 6;
    std::vector<ends> pipes;
    for (int i = 0; i < writers; ++i) pipes.push_back(ends::pipe());
    std::vector<join_handle<>> running;
    for (const ends& each : pipes)
      running.push_back(spawn([&each] {
        for (int i = 0; i < rounds; ++i) {
          each.send();
          if (i % 7 == 0) this_fiber::yield();
        }
      }));
    auto fds = readers_of(pipes);
    for (int left = rounds * writers; left > 0;) {
      ASSERT_GT(net::wait_any(fds, steady_clock::now() + bound), 0u);
      for (const fd_interest& each : fds) {
        char bytes[64];
        if (each.ready != interest::none) left -= static_cast<int>(::read(each.fd, bytes, sizeof bytes));
      }
    }
    for (auto& each : running) each.join();
  });
}

TEST(WaitAnyOnAThread, PlainThreadsBlockInPoll) {
  const auto pair = ends::sockets();
  std::jthread writer([&] { pair.send(); });
  EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read), interest::read);
  writer.join();
  pair.receive();
  EXPECT_EQ(net::wait_fd(pair.fd[0], interest::read, steady_clock::now() + 1ms), interest::none);
}

}  // namespace
}  // namespace ulexite::test
