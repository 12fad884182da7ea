#pragma once

#include <ulexite/base/standard.hpp>

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ulexite::detail {

// A descriptor of the loop. The destructor closes it.
class owned_fd {
 public:
  // Takes over `fd`, the result of a system call. Throws std::system_error that names `what` if the call failed.
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
