#pragma once

#include <ulexite/base/standard.hpp>

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ulexite::detail {

// A descriptor of the loop's own, closed at the end of its life.
class owned_fd {
 public:
  // Takes over `fd`, the result of a system call that was to do `what`. Throws std::system_error if it failed.
  owned_fd(int fd, const char* what) : fd_(fd) {
    if (fd < 0) throw std::system_error(errno, std::system_category(), what);
  }
  ~owned_fd() { ::close(fd_); }
  owned_fd(const owned_fd&) = delete;
  owned_fd& operator=(const owned_fd&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace ulexite::detail
