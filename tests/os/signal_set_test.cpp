// Signals of the process on channels.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/signal_set.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <semaphore>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::signal_set;
using namespace ulexite::test;

class SignalSet : public OsTest {};
ULEXITE_TEST_WORKERS(SignalSet);

struct sigaction action_of(int signal) {
  struct sigaction present{};
  EXPECT_EQ(::sigaction(signal, nullptr, &present), 0);
  return present;
}

TEST_P(SignalSet, RaisedSignalsCome) {
  in_runtime([] {
    signal_set some{SIGUSR1, SIGUSR2};
    ASSERT_EQ(::raise(SIGUSR1), 0);
    EXPECT_EQ(some.receive(), SIGUSR1);
    ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
    EXPECT_EQ(some.receive(), SIGUSR2);
  });
}

TEST_P(SignalSet, WorksFromBeforeTheRuntimeUntilAfter) {
  signal_set some{SIGUSR1};
  ASSERT_EQ(::raise(SIGUSR1), 0);
  in_runtime([&] {
    EXPECT_EQ(some.receive(), SIGUSR1);
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  });
  EXPECT_EQ(some.receive(), SIGUSR1);  // on a plain thread
}

TEST_P(SignalSet, WhatCameForAnEarlierSetIsNotForThis) {
  in_runtime([] {
    for (int i = 0; i < times(50); ++i) {
      {
        signal_set earlier{SIGUSR1};
        ASSERT_EQ(::raise(SIGUSR1), 0);
      }  // mostly before the signal was sent on
      signal_set some{SIGUSR1, SIGUSR2};
      ASSERT_EQ(::raise(SIGUSR2), 0);
      ASSERT_EQ(some.receive(), SIGUSR2) << i;
    }
  });
}

TEST_P(SignalSet, WakesTheOneWhoWaits) {
  signal_set some{SIGUSR1};
  runtime& rt = make(GetParam());
  auto waiter = spawn_until_it_waits(rt, [&] { return some.receive(); });
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  EXPECT_EQ(waiter.get(), SIGUSR1);
}

sigset_t blocked_here() {
  sigset_t blocked;
  EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  return blocked;
}

// The first worker is busy. So the thread that passes the signal on starts the worker that receives it.
TEST_P(SignalSet, WorkersBlockNoSignalForIt) {
  const sigset_t usual = blocked_here();
  signal_set some{SIGUSR1};
  runtime& rt = make(GetParam());
  std::atomic<bool> busy = false, received = GetParam() == 1;
  auto waiter = spawn_until_it_waits(rt, [&] {
    EXPECT_EQ(some.receive(), SIGUSR1);
    received = true;
    return blocked_here();
  });
  auto hog = rt.spawn([&] {
    busy = true;
    return hog_until([&] { return received.load(); });
  });
  wait_until([&] { return busy.load(); });
  ASSERT_EQ(::raise(SIGUSR1), 0);
  const sigset_t there = waiter.get();
  EXPECT_TRUE(hog.get());
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    EXPECT_EQ(sigismember(&there, signal), sigismember(&usual, signal)) << signal;
}

TEST_P(SignalSet, EachSetGetsIt) {
  in_runtime([] {
    signal_set first{SIGUSR1, SIGUSR2}, second{SIGUSR1};
    std::optional<signal_set> third(std::in_place, std::initializer_list<int>{SIGUSR1});
    ASSERT_EQ(::raise(SIGUSR1), 0);
    EXPECT_EQ(first.receive(), SIGUSR1);
    EXPECT_EQ(second.receive(), SIGUSR1);
    EXPECT_EQ(third->receive(), SIGUSR1);
    third.reset();
    ASSERT_EQ(::raise(SIGUSR2), 0);
    EXPECT_EQ(first.receive(), SIGUSR2);
    EXPECT_EQ(second.channel().size(), 0u);
    ASSERT_EQ(::raise(SIGUSR1), 0);
    EXPECT_EQ(first.receive(), SIGUSR1);
    EXPECT_EQ(second.receive(), SIGUSR1);
  });
}

TEST_P(SignalSet, IsACaseOfASelect) {
  in_runtime([] {
    signal_set stop{SIGTERM};
    channel<int> nobody;
    int got = 0;
    auto killer = spawn([] { ::kill(::getpid(), SIGTERM); });
    select(on_receive(nobody, [](std::optional<int>) { ADD_FAILURE(); }),
           on_receive(stop.channel(), [&](std::optional<int> signal) { got = signal.value(); }));
    EXPECT_EQ(got, SIGTERM);
    killer.join();
  });
}

TEST_P(SignalSet, NoneIsLostWhenOthersComeInMasses) {
  in_runtime([] {
    signal_set noise{SIGUSR1, SIGUSR2};
    task_group senders;
    std::atomic<bool> heard = false;
    for (int i = 0; i < 4; ++i)
      senders.spawn([&] {
        while (!heard) {
          ::kill(::getpid(), SIGUSR1);
          this_fiber::yield();
        }
      });
    ::kill(::getpid(), SIGUSR2);
    while (noise.receive() != SIGUSR2) {
    }
    heard = true;
    senders.wait();
    // Signals that were raised before the last one arrived are merged, or arrived before it.
    int signal = 0;
    while (noise.channel().try_receive(signal) == channel_status::ok) EXPECT_EQ(signal, SIGUSR1);
  });
}

TEST_P(SignalSet, TheOldActionComesBack) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction original{};
  ASSERT_EQ(::sigaction(SIGUSR1, &ignore, &original), 0);
  in_runtime([] {
    std::optional<signal_set> first(std::in_place, std::initializer_list<int>{SIGUSR1, SIGUSR1});
    const signal_set second{SIGUSR1};
    EXPECT_NE(action_of(SIGUSR1).sa_handler, SIG_IGN);
    first.reset();
    EXPECT_NE(action_of(SIGUSR1).sa_handler, SIG_IGN);
  });
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, SIG_IGN);
  ASSERT_EQ(::sigaction(SIGUSR1, &original, nullptr), 0);
}

TEST_P(SignalSet, OneThreadThatLetsItThroughIsEnough) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);  // in this thread, and in the workers
  signal_set some{SIGUSR1};
  std::binary_semaphore end(0);
  in_runtime([&] {
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
    std::thread open([&] {
      ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
      end.acquire();
    });
    EXPECT_EQ(some.receive(), SIGUSR1);
    end.release();
    open.join();
  });
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

// Pending for sure: every thread blocks it.
TEST_P(SignalSet, WhatWasSentBeforeTheEndDoesNotMeetTheOldAction) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  in_runtime([] {
    const signal_set some{SIGUSR1};
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  });
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, SIG_DFL);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);  // and it would end the process here
}

TEST_P(SignalSet, WhatCannotBeReceivedIsNamed) {
  in_runtime([] {
    EXPECT_THROW(signal_set{SIGSEGV}, usage_error);
    EXPECT_THROW(signal_set{0}, usage_error);
    EXPECT_THROW(signal_set{-1}, usage_error);
    EXPECT_THROW(signal_set{100'000}, usage_error);
    const auto before = action_of(SIGUSR1).sa_handler;
    EXPECT_EQ(code_of([] { signal_set{SIGUSR1, SIGKILL}; }), std::errc::invalid_argument);
    EXPECT_NE(message_of([] { signal_set{SIGKILL}; }).find("SIGKILL"), std::string::npos);
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, before);  // all or none
  });
}

// Runs `body` in a forked child, which then exits with 0, and returns the child's status.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    body();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(SignalSetFork, TheChildHasTheActionsThatWereBefore) {
  signal_set stop{SIGTERM};
  const int status = status_of_child([] {
    if (action_of(SIGTERM).sa_handler != SIG_DFL) ::_exit(1);
    ::raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(stop.receive(), SIGTERM);
}

TEST(SignalSetFork, TheChildReceivesInSetsOfItsOwn) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer starts no thread in a forked child";
  std::optional<signal_set> some(std::in_place, std::initializer_list<int>{SIGUSR1, SIGTERM});
  // So its thread has begun. AddressSanitizer of g++ 12 keeps a lock over a fork that a thread takes at its begin.
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(some->receive(), SIGTERM);
  const int status = status_of_child([&] {
    signal_set own{SIGUSR1, SIGUSR2};
    some.reset();  // is none of the child's sets
    ::raise(SIGUSR2);
    if (own.receive() != SIGUSR2) ::_exit(1);
    ::raise(SIGUSR1);
    if (own.receive() != SIGUSR1) ::_exit(2);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(some->channel().size(), 0U);
  ASSERT_EQ(::raise(SIGUSR1), 0);
  EXPECT_EQ(some->receive(), SIGUSR1);
}

TEST(SignalSetFork, TheChildKeepsAnActionThatTheProgramHasSetSince) {
  const signal_set some{SIGUSR1};
  ::signal(SIGUSR1, SIG_IGN);
  EXPECT_EQ(status_of_child([] {
              if (action_of(SIGUSR1).sa_handler != SIG_IGN) ::_exit(1);
            }),
            0);
}

TEST(SignalSetFork, ASignalThatWasForDumpsTooIsNotLost) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer runs no handler in the child of a process with threads";
  const runtime dumping({.threads = 1, .dump_signal = SIGUSR2});
  const signal_set some{SIGUSR2};
  const int status = status_of_child([] { ::raise(SIGUSR2); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2) << status;
}

// The signal comes before, during or after the child's beginning.
TEST(SignalSetFork, NoSignalToTheChildIsLost) {
  const signal_set stop{SIGTERM};
  for (int i = 0; i < times(200); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      for (;;) ::pause();
    }
    ASSERT_EQ(::kill(child, SIGTERM), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  }
}

}  // namespace
