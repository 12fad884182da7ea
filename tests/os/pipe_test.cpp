// The ends of pipes.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/pipe.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::pipe_reader;
using os::pipe_writer;
using namespace ulexite::test;

class Pipe : public OsTest {};
ULEXITE_TEST_WORKERS(Pipe);

struct both_ends {
  both_ends() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader = pipe_reader::adopt(ends[0]);
    writer = pipe_writer::adopt(ends[1]);
  }
  // Until no byte more fits.
  void fill() {
    const std::string block(4096, '.');
    while (::write(writer.native_handle(), block.data(), block.size()) > 0) {
    }
  }
  pipe_reader reader;
  pipe_writer writer;
};

bool sigpipe_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

TEST_P(Pipe, MegabytesGoThrough) {
  in_runtime([] {
    both_ends pipe;
    std::string data(3'000'000, ' ');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 251);
    auto writer = spawn([&] {
      pipe.writer.write(data);
      pipe.writer.close();
    });
    EXPECT_TRUE(pipe.reader.read_all() == data);
    writer.get();
    char letter = 0;
    EXPECT_EQ(pipe.reader.read_some(&letter, 1), 0u);  // and again
  });
}

TEST_P(Pipe, WritingWithoutAReaderIsAnErrorAndNoSignal) {
  struct sigaction to_death{};
  to_death.sa_handler = SIG_DFL;
  ASSERT_EQ(::sigaction(SIGPIPE, &to_death, nullptr), 0);
  in_runtime([] {
    both_ends pipe;
    pipe.reader.close();
    std::error_code error;
    EXPECT_EQ(pipe.writer.write("x", error), 0u);
    EXPECT_EQ(error, std::errc::broken_pipe);
    EXPECT_EQ(code_of([&] { pipe.writer.write("x"); }), std::errc::broken_pipe);
    EXPECT_FALSE(sigpipe_pending());

    both_ends full;
    full.fill();
    auto waiter = spawn([&] { return code_of([&] { full.writer.write("x"); }); });
    this_fiber::yield();
    full.reader.close();
    EXPECT_EQ(waiter.get(), std::errc::broken_pipe);
    EXPECT_FALSE(sigpipe_pending());
  });
}

TEST_P(Pipe, WaitsAreCancelled) {
  both_ends empty, full;
  full.fill();
  runtime& rt = make(GetParam());
  char letter = 0;
  expect_stop_ends(rt, [&] { empty.reader.read_some(&letter, 1); });
  expect_stop_ends(rt, [&] { full.writer.write("x"); });
  expect_stop_forbids(rt, [&] { full.writer.write("x"); });
  rt.run([&] {
    EXPECT_THROW(timeout(1ms, [&] { empty.reader.read_some(&letter, 1); }), deadline_exceeded);
    empty.writer.write("y");  // nothing of that has hurt
    EXPECT_EQ(empty.reader.read_some(&letter, 1), 1u);
    EXPECT_EQ(letter, 'y');
  });
}

TEST_P(Pipe, ACloseWakesWhoWaitsOnIt) {
  both_ends empty, full;
  full.fill();
  runtime& rt = make(GetParam());
  char letter = 0;
  auto reader = spawn_until_it_waits(rt, [&] { return code_of([&] { empty.reader.read_some(&letter, 1); }); });
  auto writer = spawn_until_it_waits(rt, [&] { return code_of([&] { full.writer.write("x"); }); });
  empty.reader.close();
  full.writer.close();
  EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
  EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
  EXPECT_FALSE(full.writer.is_open());
}

TEST_P(Pipe, NoneAndClosedOnesFail) {
  in_runtime([] {
    char letter = 0;
    pipe_reader reader;
    pipe_writer writer;
    EXPECT_FALSE(reader.is_open());
    EXPECT_EQ(code_of([&] { reader.read_some(&letter, 1); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { writer.write("x"); }), std::errc::bad_file_descriptor);
    reader.close();
    EXPECT_EQ(writer.release(), -1);
    EXPECT_EQ(code_of([] { (void)pipe_reader::adopt(-1); }), std::errc::bad_file_descriptor);
    both_ends pipe;
    EXPECT_EQ(::close(pipe.reader.release()), 0);
    EXPECT_FALSE(pipe.reader.is_open());
  });
}

TEST_P(Pipe, ServesPlainThreads) {
  in_runtime([] {
    both_ends there, back;
    std::thread echo([&] {
      const std::string text = there.reader.read_all();
      back.writer.write(text);
      back.writer.close();
    });
    there.writer.write("over");
    there.writer.close();
    EXPECT_EQ(back.reader.read_all(), "over");
    echo.join();
  });
}

}  // namespace
