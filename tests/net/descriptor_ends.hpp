#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace ulexite::test {

// Two ends, made non-blocking: of a pipe, the reading one first, or one end of a socketpair.
struct ends {
  static ends pipe() {
    ends made;
    EXPECT_EQ(::pipe2(made.fd, O_NONBLOCK | O_CLOEXEC), 0);
    return made;
  }
  static ends sockets() {
    ends made;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, made.fd), 0);
    return made;
  }
  ends() = default;
  ends(ends&& other) noexcept : fd{std::exchange(other.fd[0], -1), std::exchange(other.fd[1], -1)} {}
  ~ends() {
    shut(0);
    shut(1);
  }
  void shut(int end) {
    if (fd[end] >= 0) ::close(std::exchange(fd[end], -1));
  }
  void send() const { EXPECT_EQ(::write(fd[1], "x", 1), 1); }
  void receive() const {
    char c;
    EXPECT_EQ(::read(fd[0], &c, 1), 1);
  }
  void fill() const {
    const std::string block(4096, 'x');
    while (::write(fd[1], block.data(), block.size()) > 0) {
    }
  }
  void drain() const {
    char block[4096];
    while (::read(fd[0], block, sizeof block) > 0) {
    }
  }
  int fd[2] = {-1, -1};
};

}  // namespace ulexite::test
