#pragma once

// Writing to a pipe or terminal that may be full: the fiber waits, and can be cancelled. std::cout would block the
// worker.

#include <ulexite/net/io_wait.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <system_error>

namespace examples {

// Negative: the error's number. See input::read_now.
[[gnu::noinline]] inline ssize_t write_now(int fd, const char* data, std::size_t size) {
  const ssize_t wrote = ::write(fd, data, size);
  return wrote < 0 ? -errno : wrote;
}

// Writes all of it to standard output. A cancellation point. No more than PIPE_BUF at a time, which a pipe that is
// ready takes without blocking.
inline void write_out(std::string_view text) {
  while (!text.empty()) {
    ulexite::net::wait_writable(STDOUT_FILENO);
    const ssize_t wrote = write_now(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (wrote >= 0)
      text.remove_prefix(static_cast<std::size_t>(wrote));
    else if (wrote != -EAGAIN && wrote != -EINTR)
      throw std::system_error(static_cast<int>(-wrote), std::system_category(), "cannot write to standard output");
  }
}

}  // namespace examples
