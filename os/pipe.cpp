#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/no_sigpipe.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/os/pipe.hpp>

#include <unistd.h>

namespace ulexite::os {
namespace {

using detail::result_or_errno;
using detail::socket;

int made_non_blocking(int fd) {
  detail::make_non_blocking(fd);
  return fd;
}

// One operation of a pipe in one direction; `call(fd)` returns its result or -errno.
template <class Call>
std::size_t perform(const detail::socket_handle& handle, detail::direction side, std::error_code& error, Call&& call) {
  socket* const on = handle.get(error);
  return on ? on->perform(side, detail::no_deadline, error, call) : 0;
}

}  // namespace

pipe_end::pipe_end(int fd) : handle_(made_non_blocking(fd)) {}

void pipe_end::close() noexcept {
  if (socket* const mine = handle_.get()) mine->close();
}

int pipe_end::native_handle() const noexcept {
  const socket* const mine = handle_.get();
  return mine ? mine->fd() : -1;
}

int pipe_end::release() {
  socket* const mine = handle_.get();
  return mine ? mine->release() : -1;
}

std::size_t pipe_reader::read_some(void* data, std::size_t size, std::error_code& error) {
  return perform(handle_, socket::read_side, error, [&](int fd) { return result_or_errno(::read(fd, data, size)); });
}

std::size_t pipe_reader::read_some(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read_some(data, size, error);
  if (error) detail::fail(error, "ulexite: reading from a pipe");
  return got;
}

std::string pipe_reader::read_all(std::error_code& error) {
  constexpr std::size_t room = 65'536;  // as much as a pipe holds
  std::string content;
  for (std::size_t done = 0;;) {
    content.resize(done + room);
    const std::size_t got = read_some(content.data() + done, room, error);
    done += got;
    if (got > 0 && !error) continue;
    content.resize(done);
    return content;
  }
}

std::string pipe_reader::read_all() {
  std::error_code error;
  std::string content = read_all(error);
  if (error) detail::fail(error, "ulexite: reading from a pipe");
  return content;
}

std::size_t pipe_writer::write_some(const void* data, std::size_t size, std::error_code& error) {
  return perform(handle_, socket::write_side, error,
                 [&](int fd) { return detail::write_without_sigpipe([&] { return ::write(fd, data, size); }); });
}

std::size_t pipe_writer::write_some(const void* data, std::size_t size) {
  std::error_code error;
  const std::size_t written = write_some(data, size, error);
  if (error) detail::fail(error, "ulexite: writing to a pipe");
  return written;
}

std::size_t pipe_writer::write(const void* data, std::size_t size, std::error_code& error) {
  std::size_t done = 0;
  do done += write_some(static_cast<const char*>(data) + done, size - done, error);
  while (!error && done < size);
  return done;
}

void pipe_writer::write(const void* data, std::size_t size) {
  std::error_code error;
  write(data, size, error);
  if (error) detail::fail(error, "ulexite: writing to a pipe");
}

}  // namespace ulexite::os
