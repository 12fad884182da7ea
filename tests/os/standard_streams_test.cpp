// Streams over whatever a descriptor is open for.

#include "os/os_fixture.hpp"

#include <ulexite/net/buffered.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/os/standard_streams.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::input_stream;
using os::output_stream;
using os::process;
using namespace ulexite::test;

class StandardStreams : public OsTest {
 protected:
  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(StandardStreams);

// Two ends of something, closed at the end.
struct ends {
  int read, write;
  static ends of_pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    return {fds[0], fds[1]};
  }
  static ends of_sockets() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return {fds[0], fds[1]};
  }
  static ends of_terminal() {
    int main, other;
    EXPECT_EQ(::openpty(&main, &other, nullptr, nullptr, nullptr), 0);
    return {other, main};
  }
  ends(int r, int w) : read(r), write(w) {}
  ends(const ends&) = delete;
  ends& operator=(const ends&) = delete;
  ~ends() {
    ::close(read);
    if (write >= 0) ::close(write);
  }
};

TEST_P(StandardStreams, ReadLinesFromPipesSocketsAndTerminals) {
  in_runtime([&] {
    for (const auto make : {ends::of_pipe, ends::of_sockets, ends::of_terminal}) {
      const ends made = make();
      const int flags = ::fcntl(made.read, F_GETFL);
      auto from = input_stream::share(made.read, "the test's input");
      net::buffered_reader in(from);
      auto reading = spawn([&] {
        std::string lines;
        for (int i = 0; i < 2; ++i) lines += std::string(in.read_line().value()) + ";";
        return lines;
      });
      this_fiber::sleep_for(1ms);
      EXPECT_EQ(::write(made.write, "one\ntw", 6), 6);
      this_fiber::sleep_for(1ms);
      EXPECT_EQ(::write(made.write, "o\n", 2), 2);
      EXPECT_EQ(reading.get(), "one;two;");
      EXPECT_EQ(::fcntl(made.read, F_GETFL), flags) << "what others share was changed";
      EXPECT_THROW(timeout(1ms, [&] { (void)in.read_line(); }), deadline_exceeded);
    }
  });
}

// An open of /dev/ptmx makes another terminal.
TEST_P(StandardStreams, OfAMasterBelongToItsTerminal) {
  in_runtime([&] {
    const ends made = ends::of_terminal();
    auto from = input_stream::share(made.write, "the terminal");
    auto to = output_stream::share(made.write, "the terminal");
    unsigned given = 0, read = 1, written = 2;
    EXPECT_EQ(::ioctl(made.write, TIOCGPTN, &given), 0);
    EXPECT_EQ(::ioctl(from.native_handle(), TIOCGPTN, &read), 0);
    EXPECT_EQ(::ioctl(to.native_handle(), TIOCGPTN, &written), 0);
    ASSERT_EQ(read, given);
    EXPECT_EQ(written, given);
    EXPECT_EQ(::write(made.read, "hello", 5), 5);
    char text[10];
    EXPECT_EQ(from.read_some(text, sizeof text), 5u);
  });
}

// A read of a disk never says that it would block.
TEST_P(StandardStreams, ReadDisksOnThePool) {
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [] {
    int disk = -1;
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator("/dev", none))
      if (disk < 0 && each.is_block_file(none)) disk = ::open(each.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (disk < 0) GTEST_SKIP() << "no disk may be read";
    auto from = input_stream::share(disk, "a disk");
    ::close(disk);
    busy_pool busy;
    auto reading = spawn([&] {
      char byte;
      std::error_code error;
      (void)from.read_some(&byte, 1, error);
    });
    EXPECT_TRUE(waits_for_the_pool(reading));
    busy.end();
    reading.get();
  });
}

// What is in memory is read on the worker, and other parts on the pool.
TEST_P(StandardStreams, WriteAndReadFilesInPartsOfEverySize) {
  in_runtime([&] {
    const std::string path = scratch_ / "text";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    auto to = output_stream::share(fd, "text");
    ::close(fd);
    std::string expected;
    for (const std::size_t size : {1, 4096, 5000, 256 * 1024, 256 * 1024 + 1, 3'000'000}) {
      const std::string part(size, static_cast<char>('a' + size % 23));
      to.write(part);
      expected += part;
    }
    input_stream from(path);
    std::string all(expected.size() + 10, ' ');
    std::size_t got = 0, most = 1;
    while (const std::size_t more = from.read_some(all.data() + got, std::min(most, all.size() - got))) {
      got += more;
      most *= 3;
    }
    all.resize(got);
    EXPECT_TRUE(all == expected) << got << " of " << expected.size();
  });
}

TEST_P(StandardStreams, ReadFilesFromWhereTheyStand) {
  in_runtime([&] {
    std::ofstream(scratch_ / "text") << "first\nsecond\nthird";
    input_stream from(scratch_ / "text");
    net::buffered_reader in(from, 4);
    EXPECT_EQ(in.read_line(), "first");
    EXPECT_EQ(in.read_line(), "second");
    EXPECT_EQ(in.read_line(), "third");
    EXPECT_EQ(in.read_line(), std::nullopt);
    const int fd = ::open((scratch_ / "text").c_str(), O_RDONLY | O_CLOEXEC);
    ::lseek(fd, 6, SEEK_SET);
    auto shared = input_stream::share(fd, "text");
    net::buffered_reader rest(shared);
    EXPECT_EQ(rest.read_line(), "second");
    ::close(fd);
    auto nothing = input_stream(std::filesystem::path("/dev/null"));
    char byte;
    EXPECT_EQ(nothing.read_some(&byte, 1), 0u);
    EXPECT_THROW(input_stream(scratch_ / "none"), std::system_error);
    EXPECT_THROW((void)input_stream::share(-1, "nothing"), std::system_error);
  });
}

// The pipe is full again and again: the writers wait, the worker does not.
TEST_P(StandardStreams, WriteWholeTextsFromManyFibers) {
  in_runtime([&] {
    for (const auto make : {ends::of_pipe, ends::of_sockets}) {
      ends made = make();
      const std::size_t length = 9'000;
      const int writers = 8, texts = 20;
      task_group group;
      group.spawn([&] {
        auto from = input_stream::share(made.read, "input");
        net::buffered_reader in(from);
        for (int i = 0; i < writers * texts; ++i) {
          const auto line = in.read_line(2 * length);
          EXPECT_EQ(line.value().size(), length);
          EXPECT_EQ(line->find_first_not_of(line->front()), std::string_view::npos) << "texts were mixed";
        }
      });
      auto to = output_stream::share(made.write, "output");
      for (int i = 0; i < writers; ++i)
        group.spawn([&, i] {
          for (int k = 0; k < texts; ++k) to.write(std::string(length, static_cast<char>('a' + i)) + "\n");
        });
      group.wait();
    }
  });
}

TEST_P(StandardStreams, TellOfAReaderThatHasGone) {
  in_runtime([&] {
    for (const auto make : {ends::of_pipe, ends::of_sockets}) {
      ends made = make();
      auto to = output_stream::share(made.write, "output");
      ::close(std::exchange(made.read, ::open("/dev/null", O_RDONLY | O_CLOEXEC)));
      std::error_code error;
      EXPECT_EQ(to.write("lost", error), 0u);
      EXPECT_EQ(error, std::errc::broken_pipe);
    }
    const int fd = ::open((scratch_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    output_stream::share(fd, "out").write("kept");
    ::close(fd);
    EXPECT_EQ(std::filesystem::file_size(scratch_ / "out"), 4u);
  });
}

TEST_P(StandardStreams, AreCancellable) {
  in_runtime([&] {
    const ends made = ends::of_pipe();
    auto from = input_stream::share(made.read, "input");
    auto reading = spawn([&] {
      char byte;
      (void)from.read_some(&byte, 1);
    });
    this_fiber::sleep_for(1ms);
    reading.request_stop();
    EXPECT_THROW(reading.get(), operation_cancelled);
    auto to = output_stream::share(made.write, "output");
    EXPECT_THROW(timeout(5ms, [&] { to.write(std::string(1'000'000, 'x')); }), deadline_exceeded);
  });
}

// The reader is slow, so the first writer waits for it, and the second for its turn.
TEST_P(StandardStreams, AWriterThatWaitsForItsTurnIsCancellable) {
  in_runtime([&] {
    const ends made = ends::of_pipe();
    auto to = output_stream::share(made.write, "output");
    std::size_t written = 0;
    auto first = spawn([&] {
      std::error_code error;
      written = to.write(std::string(1'000'000, 'x'), error);
      EXPECT_EQ(error, errc::cancelled);
    });
    for (pollfd room{to.native_handle(), POLLOUT, 0}; ::poll(&room, 1, 0) > 0;) this_fiber::yield();
    auto second = spawn([&] { to.write("y"); });
    EXPECT_THROW(timeout(20ms, [&] { to.write("y"); }), deadline_exceeded);
    second.request_stop();
    EXPECT_THROW(second.get(), operation_cancelled);
    first.request_stop();
    first.get();
    EXPECT_LT(written, 1'000'000u);
  });
}

// As any operation that does not have to wait: it does not read the clock.
TEST_P(StandardStreams, AWriteThatNeedNotWaitIsDoneAfterTheDeadline) {
  in_runtime([] {
    const ends made = ends::of_pipe();
    auto to = output_stream::share(made.write, "output");
    timeout(0s, [&] {
      to.write("x");
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
      EXPECT_THROW(to.write("y"), deadline_exceeded);
    });
    char text[3];
    EXPECT_EQ(::read(made.read, text, sizeof text), 1);
  });
}

TEST_P(StandardStreams, OfTheProcessAreThere) {
  EXPECT_GE(standard_input().native_handle(), 0);  // they keep their descriptors to the end
  standard_error().write("");
  standard_output().write("");
  in_runtime([&] {
    standard_output().write("");
    EXPECT_EQ(standard_output().name(), "standard output");
    EXPECT_EQ(&standard_error(), &standard_error());
  });
}

// Its new description would become readable only after another writer.
TEST_P(StandardStreams, ANamedPipeEndsAlthoughItsWritersLeftEarly) {
  in_runtime([&] {
    const auto path = scratch_ / "fifo";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const int read = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int write = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::write(write, "hi\n", 3), 3);
    ::close(write);
    auto shared = input_stream::share(read, "the pipe");
    net::buffered_reader in(shared);
    EXPECT_EQ(in.read_line(), "hi");
    timeout(10s, [&] { EXPECT_EQ(in.read_line(), std::nullopt); });

    const int again = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    auto writer = spawn([&] {
      wait_until_others_wait();
      EXPECT_EQ(::write(again, "ho\n", 3), 3);
      ::close(again);
    });
    EXPECT_EQ(in.read_line(), "ho");
    EXPECT_EQ(in.read_line(), std::nullopt);
    writer.get();
    ::close(read);
  });
}

// Which of 0 to 2 is open, or "".
std::string open_standard_descriptors() {
  std::string open;
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) open += std::to_string(fd);
  return open;
}

// The value with which the call fails, or 0.
template <class Call>
int error_of(Call call) {
  std::error_code error;
  try {
    timeout(2s, [&] { call(error); });
  } catch (const std::system_error& failure) {
    error = failure.code();
  }
  return error.value();
}

// With closed standard streams: what of the library's own takes their numbers, and what a use of them gives.
std::string of_closed_streams(const runtime_options& options) {
  std::string wrong;
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  runtime(options).run([&] {
    const process running({.arguments = {"sleep", "100"}});
    wrong += open_standard_descriptors();
    const int reading = error_of([](std::error_code& error) {
      char byte;
      input_stream::share(STDIN_FILENO, "standard input").read_some(&byte, 1, error);
    });
    const int writing = error_of([](std::error_code& error) {
      output_stream::share(STDOUT_FILENO, "standard output").write("hello, world\n", error);
    });
    if (reading != EBADF) wrong += " reading gives " + std::to_string(reading);
    if (writing != EBADF) wrong += " writing gives " + std::to_string(writing);
  });
  return wrong + open_standard_descriptors();
}

// The process that asks has standard streams, and tells what the other one, that has none, found.
TEST_P(StandardStreams, ThatAreClosedAreNotTheLibrarysOwnDescriptors) {
  // The child starts threads, which ThreadSanitizer forbids it if this process has some, as after the tests of signals.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int told = ::dup(STDERR_FILENO);
  EXPECT_EXIT(
      {
        ::alarm(60);
        const std::string wrong =
            of_closed_streams({.threads = static_cast<unsigned>(GetParam()), .dump_signal = SIGUSR1});
        ::dprintf(told, "%s\n", wrong.c_str());
        ::_exit(wrong.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  ::close(told);
}

}  // namespace
