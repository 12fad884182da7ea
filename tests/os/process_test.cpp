// Programs that are started.

#include "os/os_fixture.hpp"
#include "support/seccomp.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/os/walk.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::exit_status;
using os::file;
using os::open_mode;
using os::pipe_reader;
using os::process;
using os::process_options;
using os::process_output;
using os::stdio;
using namespace ulexite::test;

class Process : public OsTest {};
ULEXITE_TEST_WORKERS(Process);

process_options shell(std::string script) { return {.arguments = {"/bin/sh", "-c", std::move(script)}}; }

std::string output(process_options options, std::string_view input = {}) {
  const process_output result = output_of(std::move(options), input);
  EXPECT_TRUE(result.status.success()) << to_string(result.status);
  return result.out;
}

std::string test_data(std::size_t size) {
  std::string data(size, ' ');
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<char>(i * 2654435761u >> 11);
  return data;
}

// A line of /proc/PID/status as a set of bits, without the two that libc keeps for itself (32 and 33).
std::uint64_t signals_in(const std::string& status, const char* line) {
  const std::size_t at = status.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return std::stoull(status.substr(at + std::string_view(line).size()), nullptr, 16) & ~(std::uint64_t{3} << 31);
}

// Whether that is our child, even a zombie. The number of a reaped child may belong to another process now.
bool exists(pid_t number) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(number), &end, WEXITED | WNOHANG | WNOWAIT) == 0;
}

TEST_P(Process, TellsHowItEnded) {
  in_runtime([] {
    EXPECT_EQ(process(shell("exit 0")).wait(), exit_status{});
    process seven(shell("exit 7"));
    EXPECT_EQ(seven.wait(), exit_status{.code = 7});
    EXPECT_EQ(seven.wait(), exit_status{.code = 7});  // and again
    const exit_status killed = process(shell("kill -TERM $$")).wait();
    EXPECT_EQ(killed, exit_status{.signal = SIGTERM});
    EXPECT_FALSE(killed.success());
    EXPECT_EQ(to_string(killed), "signal 15 (SIGTERM)");
    EXPECT_EQ(to_string({.code = 7}), "exit code 7");
  });
}

TEST_P(Process, MegabytesGoBothWaysAtOnce) {
  in_runtime([] {
    const std::string data = test_data(5'000'000);
    process cat({.arguments = {"cat"}, .in = stdio::pipe, .out = stdio::pipe});
    auto writer = spawn([&] {
      cat.in().write(data);
      cat.in().close();
    });
    EXPECT_TRUE(cat.out().read_all() == data);
    writer.get();
    EXPECT_TRUE(cat.wait().success());
    EXPECT_TRUE(output({.arguments = {"cat"}}, data) == data);
  });
}

TEST_P(Process, OutputAndErrorsAreCollectedApart) {
  in_runtime([] {
    auto options = shell("echo out; echo err >&2; exit 3");
    options.err = stdio::pipe;
    const process_output result = output_of(options);
    EXPECT_EQ(result.out, "out\n");
    EXPECT_EQ(result.err, "err\n");
    EXPECT_EQ(result.status.code, 3);
    EXPECT_EQ(output(shell("cat >/dev/null; echo read it")), "read it\n") << "its input is not ours";
  });
}

TEST_P(Process, AProgramNeedNotReadItsInput) {
  in_runtime([] { EXPECT_EQ(output(shell("exec <&-; echo no"), test_data(1'000'000)), "no\n"); });
}

TEST_P(Process, ArgumentsEnvironmentAndDirectoryArrive) {
  in_runtime([] {
    EXPECT_EQ(output({.arguments = {"printf", "%s|", "a b", "", "$HOME", "\n"}}), "a b||$HOME|\n|");
    EXPECT_EQ(output({.arguments = {"/usr/bin/env"}, .environment = {{"A=1", "B=x y"}}}), "A=1\nB=x y\n");
    EXPECT_EQ(output({.arguments = {"/usr/bin/env"}, .environment = std::vector<std::string>()}), "");
    const scratch_directory scratch;
    const auto real = std::filesystem::canonical(scratch.path()).string();
    EXPECT_EQ(output({.arguments = {"/bin/pwd"}, .working_directory = scratch.path()}), real + "\n");
  });
}

TEST_P(Process, StreamsAreWhatWasAskedFor) {
  in_runtime([] {
    const scratch_directory scratch;
    file log(scratch / "log", open_mode::write | open_mode::create);
    auto options = shell("echo to out; echo to err >&2");
    options.out = options.err = stdio(log.native_handle());
    EXPECT_TRUE(process(options).wait().success());
    EXPECT_EQ(read_all(scratch / "log"), "to out\nto err\n");
    EXPECT_TRUE(log.is_open());

    auto silent = shell("read line || echo end >&2; echo lost");
    silent.in = silent.out = stdio::null;
    silent.err = stdio::pipe;
    process reader(silent);
    EXPECT_EQ(reader.err().read_all(), "end\n");
    EXPECT_FALSE(reader.in().is_open());
    EXPECT_FALSE(reader.out().is_open());
    EXPECT_TRUE(reader.wait().success());
  });
}

// Each is the other's source.
TEST_P(Process, StandardStreamsMayChangePlaces) {
  in_runtime([] {
    const int out = ::dup(1), err = ::dup(2);
    const scratch_directory scratch;
    file first(scratch / "1", open_mode::write | open_mode::create);
    file second(scratch / "2", open_mode::write | open_mode::create);
    ::dup2(first.native_handle(), 1);
    ::dup2(second.native_handle(), 2);
    auto options = shell("echo out; echo err >&2");
    options.out = stdio(2);
    options.err = stdio(1);
    const exit_status status = process(options).wait();
    ::dup2(out, 1);
    ::dup2(err, 2);
    ::close(out);
    ::close(err);
    EXPECT_TRUE(status.success());
    EXPECT_EQ(read_all(scratch / "1"), "err\n");
    EXPECT_EQ(read_all(scratch / "2"), "out\n");
  });
}

TEST_P(Process, AFailedStartNamesTheProgram) {
  in_runtime([] {
    const auto start = [](process_options options) { process started(options); };
    EXPECT_EQ(code_of([&] { start({.arguments = {"/no/such/program"}}); }), std::errc::no_such_file_or_directory);
    const auto text = message_of([&] { start({.arguments = {"no-such-program"}, .working_directory = "/tmp"}); });
    EXPECT_NE(text.find("no-such-program in /tmp"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { start({.arguments = {"/etc/passwd"}}); }), std::errc::permission_denied);
    EXPECT_EQ(code_of([&] { start({.arguments = {"true"}, .working_directory = "/no/such"}); }),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(code_of([&] { start({.arguments = {"true"}, .out = stdio(987)}); }), std::errc::bad_file_descriptor);
    EXPECT_THROW(start({.arguments = {"true"}, .out = stdio(-1)}), usage_error);
    EXPECT_THROW(start({}), usage_error);
    EXPECT_FALSE(has_children());
  });
}

// exec would end the text there, and leave the rest out.
TEST_P(Process, ATextWithANulIsRefused) {
  in_runtime([] {
    const std::string cut("a\0b", 3);
    const auto said = [](process_options options) { return message_of([&] { process started(options); }); };
    const auto expect = [](const std::string& message, const char* part) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    };
    expect(said({.arguments = {"true", cut}}), "starting true: argument 1 is \"a\\0b\", which contains a NUL");
    expect(said({.arguments = {cut}}), "argument 0 is \"a\\0b\"");
    expect(said({.arguments = {"true"}, .environment = {{"A=1", cut}}}), "environment entry 1 is \"a\\0b\"");
    expect(said({.arguments = {"true"}, .working_directory = cut}), "the working directory is \"a\\0b\"");
    EXPECT_EQ(code_of([&] { process started({.arguments = {"true", cut}}); }), std::errc::invalid_argument);
    EXPECT_FALSE(has_children());
  });
}

TEST_P(Process, NothingElseIsInherited) {
  in_runtime([] {
    const int careless = ::open("/dev/null", O_RDONLY);  // not close-on-exec
    struct sigaction ignore{}, before{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGUSR1, &ignore, &before);
    process cat({.arguments = {"cat"}, .in = stdio::pipe, .out = stdio::pipe});  // its pipes are open during this time
    // By a program that opens only the directory.
    EXPECT_EQ(output({.arguments = {"ls", "/proc/self/fd"}}), "0\n1\n2\n3\n");
    const std::string status = output({.arguments = {"cat", "/proc/self/status"}});
    ::sigaction(SIGUSR1, &before, nullptr);
    ::close(careless);
    for (const char* set : {"SigBlk:", "SigIgn:", "SigCgt:"}) EXPECT_EQ(signals_in(status, set), 0u) << set;
  });
}

TEST_P(Process, IsKilled) {
  in_runtime([] {
    process sleeper({.arguments = {"sleep", "1000"}});
    EXPECT_TRUE(exists(sleeper.id()));
    EXPECT_FALSE(sleeper.wait_for(1ms));
    EXPECT_EQ(code_of([&] { sleeper.kill(10'000); }), std::errc::invalid_argument);
    EXPECT_TRUE(sleeper.kill(SIGTERM));
    EXPECT_EQ(sleeper.wait(), exit_status{.signal = SIGTERM});
    EXPECT_FALSE(sleeper.kill(SIGTERM));
    EXPECT_EQ(sleeper.wait_for(0s), exit_status{.signal = SIGTERM});
  });
}

TEST_P(Process, SeveralWaitForOne) {
  in_runtime([] {
    process cat({.arguments = {"cat"}, .in = stdio::pipe});
    task_group waiters;
    for (int i = 0; i < 10; ++i) waiters.spawn([&] { EXPECT_TRUE(cat.wait().success()); });
    std::thread outside([&] { EXPECT_TRUE(cat.wait().success()); });
    this_fiber::yield();
    cat.in().close();
    waiters.wait();
    outside.join();
  });
}

TEST_P(Process, ACancelledWaitLeavesItAlone) {
  {
    process cat({.arguments = {"cat"}, .in = stdio::pipe});
    runtime& rt = make(GetParam());
    expect_stop_ends(rt, [&] { cat.wait(); });
    expect_stop_forbids(rt, [&] { cat.wait(); });
    rt.run([&] {
      EXPECT_THROW(timeout(1ms, [&] { cat.wait(); }), deadline_exceeded);
      EXPECT_FALSE(cat.wait_for(1ms));
      cat.in().close();
      EXPECT_TRUE(cat.wait().success());
    });
  }
  EXPECT_FALSE(has_children());
}

TEST_P(Process, TheDestructorKillsAndReaps) {
  in_runtime([] {
    pid_t first = 0, second = 0;
    {
      process sleeper({.arguments = {"sleep", "1000"}});
      first = sleeper.id();
      process other({.arguments = {"sleep", "1000"}});
      second = other.id();
      sleeper = std::move(other);
      EXPECT_FALSE(exists(first));
      EXPECT_TRUE(exists(second));
    }
    EXPECT_FALSE(exists(second));
    process(shell("exit 0")).in().close();  // a program that has ended does not stay either
    EXPECT_FALSE(has_children());
  });
}

TEST_P(Process, ACancelledOutputKillsTheProgram) {
  in_runtime([] {
    EXPECT_THROW(timeout(1ms, [] { (void)output_of({.arguments = {"sleep", "1000"}}); }), deadline_exceeded);
    EXPECT_FALSE(has_children());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto started = pipe_reader::adopt(ends[0]);
    auto caller = spawn([&] {
      auto options = shell("echo started >&2; exec sleep 1000");
      options.err = stdio(ends[1]);
      (void)output_of(options, test_data(1'000'000));
    });
    char letter = 0;
    EXPECT_EQ(started.read_some(&letter, 1), 1u);
    caller.request_stop();
    EXPECT_THROW(caller.get(), operation_cancelled);
    EXPECT_FALSE(has_children());
    ::close(ends[1]);
  });
}

TEST_P(Process, HundredsAtOnce) {
  in_runtime([] {
    constexpr int count = 200;
    std::vector<std::optional<process>> all(count);
    task_group group;
    for (int i = 0; i < count; ++i)
      group.spawn([&, i] {
        process& mine =
            all[i].emplace(process_options{.arguments = {"/bin/sh", "-c", "read code; exit $code"}, .in = stdio::pipe});
        EXPECT_FALSE(mine.wait_for(0s));
      });
    group.wait();  // all of them live now
    for (int i = 0; i < count; ++i)
      group.spawn([&, i] {
        all[i]->in().write(std::to_string(i % 100) + "\n");
        EXPECT_EQ(all[i]->wait(), exit_status{.code = i % 100});
      });
    group.wait();
    EXPECT_FALSE(has_children());
  });
}

TEST_P(Process, WritingToOneThatHasEndedIsAnError) {
  in_runtime([] {
    process ended({.arguments = {"true"}, .in = stdio::pipe});
    ended.wait();
    EXPECT_EQ(code_of([&] { ended.in().write("x"); }), std::errc::broken_pipe);
  });
}

TEST(ProcessOutside, IsWaitedForOnAPlainThread) {
  process cat({.arguments = {"cat"}, .in = stdio::pipe, .out = stdio::pipe});
  cat.in().write("plain");
  cat.in().close();
  EXPECT_EQ(cat.out().read_all(), "plain");
  EXPECT_TRUE(cat.wait().success());
}

// Makes pidfd_open fail as on an old system, in this process until its end.
void forget_pidfd_open() {
  if (!refuse_system_call(SYS_pidfd_open, ENOSYS))
    throw std::system_error(errno, std::system_category(), "setting a seccomp filter");
}

void use_processes_without_pidfd() {
  forget_pidfd_open();
  if (::syscall(SYS_pidfd_open, ::getpid(), 0) >= 0) throw std::logic_error("it is remembered");
  run([] {
    if (output_of({.arguments = {"cat"}}, "text").out != "text") throw std::logic_error("cat");
    process sleeper({.arguments = {"sleep", "1000"}});
    if (sleeper.wait_for(1ms)) throw std::logic_error("wait_for");
    sleeper.kill(SIGTERM);
    if (sleeper.wait().signal != SIGTERM) throw std::logic_error("kill");
    process left({.arguments = {"sleep", "1000"}});
    process group({.arguments = {"sleep", "1000"}, .own_group = true});
    group.kill_group(SIGTERM);
    if (group.wait().signal != SIGTERM) throw std::logic_error("kill_group");
  });
  if (has_children()) throw std::logic_error("a child is left");
}

TEST(ProcessOnAnOldSystem, IsLookedAtAgainAndAgain) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      {
        use_processes_without_pidfd();
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
