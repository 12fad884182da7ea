// Reports to readers that read, that do not, and that have gone.

#include <ulexite/base/panic.hpp>
#include <ulexite/base/write_soon.hpp>

#include "support/watchdog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using detail::write_soon;
using detail::write_to_stderr;

bool make_pipe(int (&both)[2]) { return ::pipe2(both, O_CLOEXEC) == 0; }
bool make_sockets(int (&both)[2]) { return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0; }
// Its master side reads; it changes no text.
bool make_terminal(int (&both)[2]) {
  both[0] = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (both[0] < 0 || ::grantpt(both[0]) != 0 || ::unlockpt(both[0]) != 0) return false;
  both[1] = ::open(::ptsname(both[0]), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  termios raw{};
  if (both[1] < 0 || ::tcgetattr(both[1], &raw) != 0) return false;
  ::cfmakeraw(&raw);
  return ::tcsetattr(both[1], TCSANOW, &raw) == 0;
}

struct way {
  const char* name;
  bool (*make)(int (&both)[2]);
};

class WriteSoon : public testing::TestWithParam<way> {
 protected:
  WriteSoon() {
    int both[2];
    if (!GetParam().make(both)) throw std::runtime_error("there is none");
    in_ = both[0], out_ = both[1];
  }
  ~WriteSoon() override {
    if (in_ >= 0) ::close(in_);
    ::close(out_);
  }

  void close_reader() { ::close(std::exchange(in_, -1)); }
  // Reads until so many bytes came.
  [[nodiscard]] std::string read(std::size_t size) const {
    std::string all;
    for (std::array<char, 65536> part; all.size() < size;) {
      const ssize_t some = ::read(in_, part.data(), std::min(part.size(), size - all.size()));
      if (some <= 0) break;
      all.append(part.data(), static_cast<std::size_t>(some));
    }
    return all;
  }
  // Returns how much the descriptor took.
  std::size_t fill() const {
    std::size_t size = 0;
    ::fcntl(out_, F_SETFL, O_NONBLOCK);
    for (const std::string chunk(4096, 'x'); chunk.size() > 0;) {
      const ssize_t some = ::write(out_, chunk.data(), chunk.size());
      if (some < 0) break;
      size += static_cast<std::size_t>(some);
    }
    ::fcntl(out_, F_SETFL, 0);
    return size;
  }

  const test::watchdog watchdog_{"WriteSoon"};
  int in_ = -1, out_ = -1;
};
INSTANTIATE_TEST_SUITE_P(To, WriteSoon,
                         testing::Values(way{"Pipe", make_pipe}, way{"Socket", make_sockets},
                                         way{"Terminal", make_terminal}),
                         [](const auto& each) { return each.param.name; });

TEST_P(WriteSoon, WritesAllToOneWhoReads) {
  std::string text(1 << 20, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
  std::thread writer([&] { EXPECT_TRUE(write_soon(out_, text, 60'000)); });
  EXPECT_TRUE(read(text.size()) == text);
  writer.join();
}

TEST_P(WriteSoon, LeavesOffWhereNobodyReads) {
  EXPECT_FALSE(write_soon(out_, std::string(1 << 20, 'x')));
  EXPECT_FALSE(write_soon(out_, std::string(1 << 20, 'x')));
}

// A poll that has lasted for longer than the patience must not be the last with a limit.
TEST_P(WriteSoon, LeavesOffWhereOneReadsLate) {
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(299));
    static_cast<void>(read(4096));
  });
  EXPECT_FALSE(write_soon(out_, std::string(1 << 20, 'x')));
  reader.join();
}

TEST_P(WriteSoon, RaisesNoSignalWhereTheReaderHasGone) {
  close_reader();
  EXPECT_FALSE(write_soon(out_, "a report"));
}

TEST_P(WriteSoon, SaysOnStderrThatSomethingIsMissing) {
  if (GetParam().make == make_terminal) GTEST_SKIP() << "it moves its text to the master side at some later time";
  const int before = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(out_, STDERR_FILENO);
  const std::size_t size = fill();
  write_to_stderr("not taken\n");
  detail::warn("not taken either");
  static_cast<void>(read(size));
  detail::warn("the next");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  const std::string wanted = "\nulexite: report cut\nulexite: the next\n";
  EXPECT_EQ(read(wanted.size()), wanted);
}

}  // namespace
