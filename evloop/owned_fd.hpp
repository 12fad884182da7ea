#pragma once

#include <ulexite/base/standard.hpp>

#include <unistd.h>

namespace ulexite::detail {

// A descriptor of the loop, or none: the system has refused it. The destructor closes it.
class owned_fd {
 public:
  explicit owned_fd(int fd) noexcept : fd_(fd) {}
  ~owned_fd() { ::close(fd_); }
  owned_fd(const owned_fd&) = delete;
  owned_fd& operator=(const owned_fd&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace ulexite::detail
