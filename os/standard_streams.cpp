#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket/no_sigpipe.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/standard_streams.hpp>

#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace ulexite::os {

using detail::result_or_errno;

namespace {

// Whether another open gives the same thing. A file would lose its position. The master of a terminal, like other
// devices, would become a new one.
bool opens_as_the_same(int fd) noexcept {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return false;
  if (S_ISFIFO(about.st_mode)) return true;
  unsigned number;
  return S_ISCHR(about.st_mode) && ::isatty(fd) && ::ioctl(fd, TIOCGPTN, &number) != 0;
}

}  // namespace

byte_stream::byte_stream(int fd, std::string name, detail::access how) : fd_(fd), calls_(how), name_(std::move(name)) {
  struct stat about{};
  const int result = fd < 0 ? fd : result_or_errno(::fstat(fd, &about));
  if (result < 0) {
    if (fd >= 0) ::close(fd);
    fail({-result, std::system_category()}, "opening");
  }
  const bool on_disk = S_ISREG(about.st_mode) || S_ISBLK(about.st_mode);
  const kind others = S_ISSOCK(about.st_mode) ? kind::socket : S_ISFIFO(about.st_mode) ? kind::pipe : kind::other;
  kind_ = on_disk ? kind::on_disk : others;
  if (S_ISBLK(about.st_mode)) calls_.learn(detail::nowait_support::refused);
}

// If all writers of a named pipe left before it was opened again, the new description becomes readable only after
// another writer. But a read reports the end.
byte_stream::byte_stream(opening made, std::string name, detail::access how)
    : byte_stream(made.fd, std::move(name), how) {
  reads_first_ = made.own && kind_ == kind::pipe && how == detail::access::read;
}

byte_stream::~byte_stream() {
  if (fd_ >= 0) ::close(fd_);
}

// Gives a pipe or a terminal a separate open description. Without /proc, or if permissions forbid it, the description
// is shared, and a call may block.
byte_stream::opening byte_stream::opened_again(int fd, int flags) noexcept {
  if (opens_as_the_same(fd)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const int again = ::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (again >= 0) return {again, true};
  }
  return {result_or_errno(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), false};
}

int byte_stream::opened(const std::filesystem::path& path, int flags) {
  std::error_code error;
  const int fd = detail::on_pool(error, [&] {
    return detail::has_nul(path.native())
               ? -EINVAL
               : result_or_errno(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  });
  detail::throw_if(error, "opening", path);
  return fd;
}

void byte_stream::fail(std::error_code error, const char* what) const {
  detail::fail(error, std::string("ulexite: ") + what + " " + name_);
}

// If the description is shared and may block, the wait is first. Then the call blocks only if another reader is faster.
template <class OnFile, class OnSocket>
std::size_t byte_stream::perform(std::size_t size, std::error_code& error, OnFile&& on_file, OnSocket&& on_socket) {
  if (is_on_disk()) {
    const ssize_t done = detail::make_here_or_on_pool(calls_, fd_, size, error, [&](int flags) {
      return detail::retry_on_eintr([&] { return on_file(fd_, flags); });
    });
    return error ? 0 : static_cast<std::size_t>(done);
  }
  const auto wait = [&] {
    calls_.how() == detail::access::read ? net::wait_fd(fd_, net::interest::read)
                                         : net::wait_fd(fd_, net::interest::write);
  };
  try {
    error.clear();
    detail::throw_if_stopped();
    for (bool waits = !reads_first_;; waits = true) {
      if (waits) wait();
      const ssize_t done = kind_ == kind::socket ? on_socket(fd_) : on_file(fd_, 0);
      if (done >= 0) {
        detail::spend_budget();
        return static_cast<std::size_t>(done);
      }
      if (done != -EAGAIN && done != -EINTR) {
        error.assign(static_cast<int>(-done), std::system_category());
        return 0;
      }
    }
  } catch (const std::system_error& failure) {
    error = failure.code();
    return 0;
  }
}

input_stream::input_stream(const std::filesystem::path& path)
    : byte_stream(opened(path, O_RDONLY), detail::shown(path.native()), detail::access::read) {}

input_stream::input_stream(int fd, std::string name)
    : byte_stream(opened_again(fd, O_RDONLY), std::move(name), detail::access::read) {}

std::size_t input_stream::read_some(void* data, std::size_t size, std::error_code& error) {
  error.clear();
  if (size == 0) return 0;
  return perform(
      size, error,
      [&](int fd, int flags) {
        const iovec part{data, size};
        return result_or_errno(flags == 0 ? ::read(fd, data, size) : ::preadv2(fd, &part, 1, -1, flags));
      },
      [&](int fd) { return result_or_errno(::recv(fd, data, size, MSG_DONTWAIT)); });
}

std::size_t input_stream::read_some(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read_some(data, size, error);
  if (error) fail(error, "reading from");
  return got;
}

output_stream::output_stream(int fd, std::string name)
    : byte_stream(opened_again(fd, O_WRONLY), std::move(name), detail::access::write) {}

// Writes at most PIPE_BUF at a time to a pipe. A ready pipe takes that many bytes without blocking, even if its
// description is shared.
std::size_t output_stream::write_in_turn(const char* data, std::size_t size, std::error_code& error) {
  return perform(
      size, error,
      [&](int fd, int flags) {
        if (!is_on_disk())
          return detail::write_without_sigpipe(
              [&] { return ::write(fd, data, std::min<std::size_t>(size, PIPE_BUF)); });
        const iovec part{const_cast<char*>(data), size};
        return result_or_errno(flags == 0 ? ::write(fd, data, size) : ::pwritev2(fd, &part, 1, -1, flags));
      },
      [&](int fd) { return result_or_errno(::send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL)); });
}

std::size_t output_stream::write_some(const void* data, std::size_t size, std::error_code& error) {
  error.clear();
  if (size == 0) return 0;
  const auto turn = detail::acquire(turn_, error);
  return error ? 0 : write_in_turn(static_cast<const char*>(data), size, error);
}

std::size_t output_stream::write_some(const void* data, std::size_t size) {
  std::error_code error;
  const std::size_t taken = write_some(data, size, error);
  if (error) fail(error, "writing to");
  return taken;
}

std::size_t output_stream::write(std::string_view text, std::error_code& error) {
  const auto turn = detail::acquire(turn_, error);
  std::size_t done = 0;
  while (!error && done < text.size()) done += write_in_turn(text.data() + done, text.size() - done, error);
  return done;
}

void output_stream::write(std::string_view text) {
  std::error_code error;
  write(text, error);
  if (error) fail(error, "writing to");
}

// Never destroyed, because destructors of static objects may write.
input_stream& standard_input() {
  static input_stream& only = *new auto(input_stream::share(STDIN_FILENO, "standard input"));
  return only;
}

output_stream& standard_output() {
  static output_stream& only = *new auto(output_stream::share(STDOUT_FILENO, "standard output"));
  return only;
}

output_stream& standard_error() {
  static output_stream& only = *new auto(output_stream::share(STDERR_FILENO, "standard error"));
  return only;
}

}  // namespace ulexite::os
