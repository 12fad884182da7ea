#pragma once

// Files, pipes and terminals as sources of bytes and lines. A fiber that reads an empty pipe waits, and its worker goes
// on with others. (A regular file is always ready, and a slow disk holds the worker.)

#include <ulexite/net/io_wait.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace examples {

class input {
 public:
  // Standard input, which stays open.
  input() : fd_(STDIN_FILENO), name_("standard input") {}
  // O_NONBLOCK: else opening a named pipe would block the worker until somebody writes to it.
  explicit input(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), name_(path) {
    if (fd_ < 0) fail("cannot open ", errno);
  }
  input(input&& other) noexcept : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
  input& operator=(input&&) = delete;
  ~input() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }

  // Waits for something to read. 0 at the end. A cancellation point.
  std::size_t read_some(char* data, std::size_t size) {
    for (;;) {
      ulexite::net::wait_readable(fd_);
      const ssize_t got = read_now(data, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (got != -EAGAIN && got != -EINTR) fail("cannot read ", static_cast<int>(-got));
    }
  }

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  // Negative: the error's number. Not inlined, so that errno is looked for on the thread that called read: the fiber
  // may have changed threads in the wait before, and the compiler does not know.
  [[gnu::noinline]] ssize_t read_now(char* data, std::size_t size) const {
    const ssize_t got = ::read(fd_, data, size);
    return got < 0 ? -errno : got;
  }

  [[noreturn]] void fail(const char* what, int error) const {
    throw std::system_error(error, std::system_category(), what + name_);
  }

  int fd_;
  std::string name_;
};

// The lines of an input, without their ends. The last one need not have one.
class line_reader {
 public:
  explicit line_reader(input from) : from_(std::move(from)) {}

  // nullopt at the end. A cancellation point.
  std::optional<std::string> next() {
    for (std::size_t searched = 0;;) {
      if (const auto end = rest_.find('\n', searched); end != rest_.npos) {
        std::string line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        return line;
      }
      searched = rest_.size();
      rest_.resize(searched + 4096);
      const std::size_t got = from_.read_some(rest_.data() + searched, 4096);
      rest_.resize(searched + got);
      if (got == 0) return rest_.empty() ? std::nullopt : std::optional(std::exchange(rest_, {}));
    }
  }

 private:
  input from_;
  std::string rest_;  // read, and not yet handed out
};

}  // namespace examples
