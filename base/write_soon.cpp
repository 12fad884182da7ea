#include <ulexite/base/write_soon.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

std::int64_t time_now() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (1000 * ns_per_ms) + now.tv_nsec;
}

// Waits until the descriptor takes something, and subtracts the time from `left`. False: it will not.
bool wait_for_room(int fd, std::int64_t& left) noexcept {
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  for (;;) {
    const std::int64_t start = time_now();
    const int ready = ::poll(&room, 1, static_cast<int>(std::max<std::int64_t>(left, 0) / ns_per_ms));
    left -= time_now() - start;
    if (ready > 0)
      return room.revents == POLLOUT;  // without readers there is an error too: a write would raise SIGPIPE
    if (ready == 0 || errno != EINTR || left <= 0) return false;
  }
}

// A terminal, which knows no RWF_NOWAIT, opened again so that writes to it do not wait. Otherwise `fd` itself.
class no_wait_descriptor {
 public:
  explicit no_wait_descriptor(int fd) noexcept : fd_(fd) {
    if (::isatty(fd) != 1) return;
    char name[] = "/proc/self/fd/0123456789";
    char* end = std::begin(name) + sizeof "/proc/self/fd/" - 1;
    for (int scale = 1'000'000'000; scale > 0; scale /= 10)
      if (fd >= scale || scale == 1) *end++ = static_cast<char>('0' + fd / scale % 10);
    *end = '\0';
    own_ = ::open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  ~no_wait_descriptor() {
    if (own_ >= 0) ::close(own_);
  }
  no_wait_descriptor(const no_wait_descriptor&) = delete;
  no_wait_descriptor& operator=(const no_wait_descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return own_ >= 0 ? own_ : fd_; }

 private:
  const int fd_;
  int own_ = -1;
};

// Writes what fits. Poll says of a pipe with room for PIPE_BUF bytes that it can be written.
ssize_t write_some(int fd, std::string_view text) noexcept {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  const ssize_t written = ::pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
  if (written >= 0 || errno == EAGAIN || errno == EINTR) return written;
  return ::write(fd, text.data(), text.size());  // an old kernel, or a sandbox, refuses the flag
}

// False as soon as nothing was taken for `patience`, in nanoseconds.
bool write_in_parts(int fd, std::string_view text, std::int64_t patience) noexcept {
  for (std::int64_t left = patience; !text.empty();) {
    if (!wait_for_room(fd, left)) return false;
    const ssize_t written = write_some(fd, text.substr(0, PIPE_BUF));
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      left = patience;
    } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    } else if ((left -= ns_per_ms) <= 0) {  // poll and write do not agree
      return false;
    }
  }
  return true;
}

// A file takes a text in one piece, so that the texts of several processes do not mix.
bool write_to_file(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// State
//   cut   stderr has not taken all of a text, and no mark says so yet. Written by any thread that writes to it. A hint:
//         two threads may both write the mark.
constinit std::atomic<bool> cut{false};

}  // namespace

bool write_soon(int fd, std::string_view text, int patience) noexcept {
  const int error = errno;
  struct stat about{};
  const bool is_file = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  const bool whole =
      is_file ? write_to_file(fd, text) : write_in_parts(no_wait_descriptor(fd).get(), text, patience * ns_per_ms);
  errno = error;
  return whole;
}

void write_to_stderr(std::string_view text) noexcept {
  if (cut.load(std::memory_order_relaxed)) {  // hint
    if (!write_soon(STDERR_FILENO, "\nulexite: report cut\n", 0)) return;
    cut.store(false, std::memory_order_relaxed);  // hint
  }
  if (!write_soon(STDERR_FILENO, text)) cut.store(true, std::memory_order_relaxed);  // hint
}

}  // namespace ulexite::detail
