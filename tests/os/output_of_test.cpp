// output_of with standard error in standard output, and with a limit.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <signal.h>

#include <string>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::exit_status;
using os::file;
using os::open_mode;
using os::process;
using os::process_options;
using os::process_output;
using os::stdio;
using namespace ulexite::test;

class OutputOf : public OsTest {};
ULEXITE_TEST_WORKERS(OutputOf);

process_options shell(std::string script) { return {.arguments = {"/bin/sh", "-c", std::move(script)}}; }

TEST_P(OutputOf, StandardErrorMayGoWhereStandardOutputGoes) {
  in_runtime([] {
    auto options = shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
    options.err = stdio::as_out;
    const process_output both = output_of(options);
    EXPECT_EQ(both.out, "1\n2\n3\n4\n");
    EXPECT_EQ(both.err, "");
    EXPECT_FALSE(both.cut);

    const scratch_directory scratch;
    file log(scratch / "log", open_mode::write | open_mode::create);
    options.out = stdio(log.native_handle());
    EXPECT_TRUE(process(options).wait().success());
    EXPECT_EQ(read_all(scratch / "log"), both.out);

    options.arguments = {"test", "/dev/fd/1", "-ef", "/dev/fd/2"};
    for (const stdio out : {stdio::null, stdio::inherit, stdio::pipe}) {
      options.out = out;
      EXPECT_TRUE(process(options).wait().success());
    }
  });
}

TEST_P(OutputOf, OnlyStandardErrorMayGoThere) {
  in_runtime([] {
    const auto said = [](process_options options) { return message_of([&] { process started(options); }); };
    EXPECT_EQ(said({.arguments = {"true"}, .in = stdio::as_out}),
              "standard input of a program cannot be stdio::as_out, which is for standard error");
    EXPECT_EQ(said({.arguments = {"true"}, .out = stdio::as_out}),
              "standard output of a program cannot be stdio::as_out, which is for standard error");
    EXPECT_FALSE(has_children());
  });
}

TEST_P(OutputOf, IsCutAtTheLimit) {
  in_runtime([] {
    const auto limited = [](const char* script, std::size_t limit) { return output_of(shell(script), {}, limit); };
    EXPECT_EQ(limited("printf 12345", 5).out, "12345");
    EXPECT_FALSE(limited("printf 12345", 5).cut);
    EXPECT_EQ(limited("printf 12345", 4).out, "1234");
    EXPECT_TRUE(limited("printf 12345", 4).cut);
    EXPECT_TRUE(limited("printf 1", 0).cut);
    EXPECT_FALSE(limited("true", 0).cut);
    for (const std::size_t limit : {std::size_t{1}, std::size_t{65'536}, std::size_t{1'000'001}}) {
      const process_output endless = limited("exec yes", limit);
      EXPECT_TRUE(endless.cut);
      EXPECT_EQ(endless.out.size(), limit);
      EXPECT_EQ(endless.status, exit_status{.signal = SIGKILL});
    }
  });
}

TEST_P(OutputOf, TheLimitHoldsForEachStream) {
  in_runtime([] {
    auto options = shell("printf 1234; exec yes >&2");
    options.err = stdio::pipe;
    const process_output endless = output_of(options, {}, 4);
    EXPECT_TRUE(endless.cut);
    EXPECT_EQ(endless.err, "y\ny\n");
    options = shell("printf 1234; printf 5678 >&2");
    options.err = stdio::pipe;
    EXPECT_FALSE(output_of(options, {}, 4).cut);
    for (int i = 0; i < 20; ++i) {
      options = shell("echo the reason >&2; exec yes");
      options.err = stdio::pipe;
      EXPECT_EQ(output_of(options, {}, 100).err, "the reason\n");
      options = shell("echo the result; exec yes >&2");
      options.err = stdio::pipe;
      EXPECT_EQ(output_of(options, {}, 100).out, "the result\n");
    }
    options = shell("yes & exec yes >&2");  // both are over it
    options.err = stdio::pipe;
    options.own_group = true;
    const process_output both = output_of(options, {}, 100'000);
    EXPECT_TRUE(both.cut);
    EXPECT_TRUE(both.out.size() == 100'000 || both.err.size() == 100'000);
  });
}

TEST_P(OutputOf, ACutWaitsNeitherForItsInputNorForOtherPrograms) {
  in_runtime([] {
    const std::string unread(1'000'000, ' ');
    EXPECT_TRUE(timeout(60s, [&] { return output_of(shell("exec yes"), unread, 10); }).cut);

    const scratch_directory scratch;
    auto options = shell("sleep 1000 & echo $! > other; exec yes");
    options.working_directory = scratch.path();
    options.err = stdio::pipe;
    const process_output cut = timeout(60s, [&] { return output_of(options, unread, 10); });
    EXPECT_TRUE(cut.cut);
    EXPECT_EQ(cut.out, "y\ny\ny\ny\ny\n");
    EXPECT_EQ(::kill(std::stoi(read_all(scratch / "other")), SIGKILL), 0) << "it runs still";
  });
}

TEST_P(OutputOf, WithALimitIsCancelled) {
  in_runtime([] {
    auto options = shell("printf 123; exec sleep 1000");
    options.err = stdio::pipe;
    EXPECT_THROW(timeout(1ms, [&] { (void)output_of(options, {}, 3); }), deadline_exceeded);
    EXPECT_FALSE(has_children());
  });
}

}  // namespace
