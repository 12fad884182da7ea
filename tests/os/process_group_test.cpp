// Programs with a process group of their own. A program that still runs is seen by its end of a pipe, which it keeps
// open.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/net/buffered.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::exit_status;
using os::pipe_reader;
using os::process;
using os::process_options;
using os::stdio;
using namespace ulexite::test;

class ProcessGroup : public OsTest {};
ULEXITE_TEST_WORKERS(ProcessGroup);

// A shell in a group of its own. The script starts others, and writes a line.
process_options group_of(std::string script) {
  return {.arguments = {"/bin/sh", "-c", std::move(script)}, .out = stdio::pipe, .own_group = true};
}

void await_line(pipe_reader& from) {
  char letter = 0;
  while (letter != '\n') ASSERT_EQ(from.read_some(&letter, 1), 1u);
}

// Waits until all programs that have the other end are gone.
void await_end(pipe_reader& from) {
  EXPECT_EQ(timeout(60s, [&] { return from.read_all(); }), "");
}

bool is_open_elsewhere(pipe_reader& from) {
  char letter = 0;
  return !try_for(1ms, [&] { return from.read_some(&letter, 1); });
}

TEST_P(ProcessGroup, HasTheNumberOfItsProgram) {
  in_runtime([] {
    process plain({.arguments = {"sleep", "1000"}});
    EXPECT_EQ(::getpgid(plain.id()), ::getpgrp());
    process leader({.arguments = {"sleep", "1000"}, .own_group = true});
    EXPECT_EQ(::getpgid(leader.id()), leader.id());
    const auto text = message_of([&] { plain.kill_group(SIGTERM); });
    EXPECT_EQ(text, "process::kill_group: process " + std::to_string(plain.id()) + " was started without own_group");
    EXPECT_FALSE(plain.wait_for(0s));
  });
}

TEST_P(ProcessGroup, ASignalReachesWhatTheProgramHasStarted) {
  in_runtime([] {
    process shell(group_of("sleep 1000 & (sleep 1000; echo) & echo started; wait"));
    await_line(shell.out());
    shell.kill_group(0);
    EXPECT_TRUE(is_open_elsewhere(shell.out()));
    shell.kill_group(SIGTERM);
    await_end(shell.out());
    EXPECT_EQ(shell.wait(), exit_status{.signal = SIGTERM});
    EXPECT_EQ(code_of([&] { shell.kill_group(10'000); }), std::errc::invalid_argument);
  });
}

TEST_P(ProcessGroup, AKillOfTheProgramLeavesTheOthers) {
  in_runtime([] {
    process shell(group_of("sleep 1000 & echo started; wait"));
    await_line(shell.out());
    EXPECT_TRUE(shell.kill(SIGKILL));
    EXPECT_EQ(shell.wait(), exit_status{.signal = SIGKILL});
    EXPECT_FALSE(shell.kill(SIGKILL));
    EXPECT_TRUE(is_open_elsewhere(shell.out()));
    shell.kill_group(SIGKILL);  // its number is kept
    await_end(shell.out());
    EXPECT_EQ(shell.wait(), exit_status{.signal = SIGKILL});
  });
}

TEST_P(ProcessGroup, TheDestructorKillsWhatIsLeft) {
  in_runtime([] {
    pipe_reader out, other;
    {
      process running(group_of("sleep 1000 & echo started; wait"));
      await_line(running.out());
      other = std::move(running.out());
      process ended(group_of("sleep 1000 & echo started"));
      await_line(ended.out());
      EXPECT_TRUE(ended.wait().success());
      EXPECT_TRUE(has_children()) << "the program keeps its number";
      EXPECT_TRUE(is_open_elsewhere(ended.out()));
      out = std::move(ended.out());
      running = std::move(ended);
      await_end(other);
    }
    EXPECT_FALSE(has_children());
    await_end(out);
  });
}

TEST_P(ProcessGroup, ACancelledOutputLeavesNothing) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto seen = pipe_reader::adopt(ends[0]);
    auto caller = spawn([&] {
      auto options = group_of("echo started >&2; sleep 1000 | sleep 1000");
      options.err = stdio(ends[1]);
      (void)output_of(options);
    });
    await_line(seen);
    caller.request_stop();
    EXPECT_THROW(caller.get(), operation_cancelled);
    EXPECT_FALSE(has_children());
    ::close(ends[1]);
    await_end(seen);
  });
}

TEST_P(ProcessGroup, SparesTheNumberOfAProcessThatOtherCodeHasReaped) {
  in_runtime([] {
    process gone({.arguments = {"true"}, .own_group = true});
    ASSERT_EQ(::waitpid(gone.id(), nullptr, 0), gone.id());
    EXPECT_EQ(code_of([&] { gone.kill_group(SIGTERM); }), std::errc::no_such_process);
    EXPECT_EQ(code_of([&] { gone.wait(); }), std::errc::no_child_process);
  });
}

TEST_P(ProcessGroup, ManyAreEndedWhileTheyStartOthers) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto seen = pipe_reader::adopt(ends[0]);
    {
      task_group callers;
      for (int i = 0; i < 20; ++i)
        callers.spawn([&, i] {
          auto options = group_of("while :; do sleep 1000 & done");
          options.err = stdio(ends[1]);
          (void)try_for(std::chrono::milliseconds(i), [&] { return output_of(options).out; });
        });
      callers.wait();
    }
    EXPECT_FALSE(has_children());
    ::close(ends[1]);
    EXPECT_EQ(timeout(60s, [&] { return seen.read_all(); }).find("cannot"), std::string::npos);
  });
}

}  // namespace
