// Waits for descriptors of other owners.

#include "descriptor_ends.hpp"
#include "net_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <sys/eventfd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

namespace ulexite::test {
namespace {

class IoWait : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(IoWait);

TEST_P(IoWait, WhatIsReadyIsNotWaitedFor) {
  in_runtime([] {
    for (const auto& pair : {ends::pipe(), ends::sockets()}) {
      pair.send();
      net::wait_fd(pair.fd[0], net::interest::read);
      net::wait_fd(pair.fd[1], net::interest::write);
    }
  });
}

TEST_P(IoWait, WaitsForTheOtherSide) {
  in_runtime([] {
    const auto there = ends::pipe(), back = ends::sockets();
    auto answerer = spawn([&] {
      for (int i = 0; i < 200; ++i) {
        net::wait_fd(there.fd[0], net::interest::read);
        there.receive();
        back.send();
      }
    });
    for (int i = 0; i < 200; ++i) {
      there.send();
      EXPECT_EQ(net::wait_fd(back.fd[0], net::interest::read, bound), net::interest::read);
      back.receive();
    }
    answerer.get();
  });
}

TEST_P(IoWait, WaitsForRoom) {
  in_runtime([] {
    for (const auto& pair : {ends::pipe(), ends::sockets()}) {
      pair.fill();
      EXPECT_EQ(net::wait_fd(pair.fd[1], net::interest::write, 1ms), net::interest::none);
      auto reader = spawn([&] { pair.drain(); });
      EXPECT_EQ(net::wait_fd(pair.fd[1], net::interest::write, bound), net::interest::write);
      reader.get();
    }
  });
}

TEST_P(IoWait, GivesUpInTime) {
  in_runtime([] {
    for (const auto& pair : {ends::pipe(), ends::sockets()}) {
      const auto start = steady_clock::now();
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, 20ms), net::interest::none);
      EXPECT_GE(steady_clock::now() - start, 20ms);
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, steady_clock::now() + 1ms), net::interest::none);
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, -1s), net::interest::none) << "asks once";
      pair.send();
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, 0s), net::interest::read) << "asks once";
      EXPECT_EQ(net::wait_fd(pair.fd[1], net::interest::write, steady_clock::time_point::min()), net::interest::write);
    }
  });
}

TEST_P(IoWait, HangUpCountsAsReady) {
  in_runtime([] {
    for (auto make : {ends::pipe, ends::sockets}) {
      auto pair = make();
      auto waiter = spawn([&] { net::wait_fd(pair.fd[0], net::interest::read); });
      let_others_run();
      pair.shut(1);
      waiter.get();
    }
  });
}

TEST_P(IoWait, SeveralMayWaitForOneDescriptor) {
  in_runtime([] {
    const auto pair = ends::sockets();
    std::vector<join_handle<>> waiters;
    for (int i = 0; i < 10; ++i) waiters.push_back(spawn([&] { net::wait_fd(pair.fd[0], net::interest::read); }));
    net::wait_fd(pair.fd[0], net::interest::write);
    let_others_run();
    pair.send();
    for (auto& waiter : waiters) waiter.get();
  });
}

// The number is used again without a notification.
TEST_P(IoWait, DescriptorNumbersMayBeReused) {
  in_runtime([] {
    for (int i = 0; i < 200; ++i) {
      const auto pair = i % 2 ? ends::pipe() : ends::sockets();
      auto sender = spawn([&] { pair.send(); });
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, bound), net::interest::read);
      pair.receive();
      EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, 0s), net::interest::none);
      sender.get();
    }
  });
}

TEST_P(IoWait, WaitsBesideAStreamOfItsOwn) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto reader = spawn([&] {
      char c;
      return pair.right.read_some(&c, 1);
    });
    auto waiter = spawn([&] { net::wait_fd(pair.right.native_handle(), net::interest::read); });
    let_others_run();
    EXPECT_FALSE(waiter.done());
    pair.left.shutdown_write();  // stays readable, in any order
    EXPECT_EQ(reader.get(), 0u);
    waiter.get();
  });
}

TEST_P(IoWait, IsBoundedByTheFibersDeadline) {
  in_runtime([] {
    const ends pair = ends::pipe();
    EXPECT_THROW(timeout(1ms, [&] { net::wait_fd(pair.fd[0], net::interest::read); }), deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { (void)net::wait_fd(pair.fd[0], net::interest::read, 1h); }), deadline_exceeded);
  });
}

TEST_P(IoWait, ReadinessAndTimeOutRace) {
  in_runtime([] {
    const auto pair = ends::sockets();
    for (int i = 0; i < 300; ++i) {
      auto sender = spawn([&] {
        this_fiber::sleep_for(200us);
        pair.send();
      });
      if (net::wait_fd(pair.fd[0], net::interest::read, 200us) == net::interest::none) {
        EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, bound), net::interest::read);
      }
      pair.receive();
      sender.get();
    }
  });
}

TEST_P(IoWait, RegularFileIsAlwaysReady) {
  in_runtime([] {
    const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    net::wait_fd(fd, net::interest::read);
    EXPECT_EQ(net::wait_fd(fd, net::interest::write, 1s), net::interest::write);
    ::close(fd);
  });
}

TEST_P(IoWait, ClosedDescriptorIsAnError) {
  in_runtime([] {
    try {
      net::wait_fd(-1, net::interest::read);
      FAIL();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
      EXPECT_NE(std::string(error.what()).find("waiting to read fd -1"), std::string::npos) << error.what();
    }
    EXPECT_EQ(code_of([] { net::wait_fd(54321, net::interest::write); }), std::errc::bad_file_descriptor);
  });
}

void wait_in_a_job() {
  runtime rt({.threads = 2});
  rt.run([] {
    static job waits;
    waits.run = [](job*) noexcept { net::wait_fd(::eventfd(0, EFD_NONBLOCK), net::interest::read); };
    schedule(waits);
    for (;;) this_fiber::yield();
  });
}

TEST(IoWaitDeathTest, InAJobIsAReportedBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_in_a_job(), testing::KilledBySignal(SIGABRT), "BUG: a job or a stop callback waits");
}

TEST(IoWaitOnAPlainThread, IsBoundedByTheThreadsDeadline) {
  const ends pair = ends::pipe();
  const deadline_scope scope(1ms);
  EXPECT_THROW(net::wait_fd(pair.fd[0], net::interest::read), deadline_exceeded);
  EXPECT_THROW(net::wait_fd(pair.fd[1], net::interest::write), deadline_exceeded);  // sticky
}

TEST(IoWaitOnAPlainThread, BlocksInPoll) {
  const auto pair = ends::pipe();
  EXPECT_EQ(net::wait_fd(pair.fd[0], net::interest::read, 10ms), net::interest::none);
  EXPECT_EQ(net::wait_fd(pair.fd[1], net::interest::write, bound), net::interest::write);
  std::thread sender([&] { pair.send(); });
  net::wait_fd(pair.fd[0], net::interest::read);
  sender.join();
  EXPECT_EQ(code_of([] { net::wait_fd(54321, net::interest::write); }), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace ulexite::test
