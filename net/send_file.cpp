#include <ulexite/net/quiet_write.hpp>
#include <ulexite/net/socket.hpp>
#include <ulexite/net/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/blocking.hpp>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace ulexite::net {
namespace {

// Each part costs a worker some 100 us, and five system calls.
constexpr std::size_t part_size = 512 * 1024;

// Whether the last byte of a part is in memory, according to the system. Then the other bytes most likely are too.
bool is_in_memory(int file, off_t last) noexcept {
  char byte;
  const iovec into{&byte, 1};
  return ::preadv2(file, &into, 1, last, RWF_NOWAIT) >= 0 || detail::last_errno() != EAGAIN;
}

// sendfile waits for the disk, and would block the worker with all of its fibers. So the pool first reads a part that
// is not in memory. sendfile reports the errors.
void bring_into_memory(int file, off_t at, std::size_t size) {
  if (is_in_memory(file, at + static_cast<off_t>(size) - 1)) return;
  blocking([=] {
    char byte;
    ::readahead(file, at, size);  // begins to read all of it
    static_cast<void>(::pread(file, &byte, 1, at + static_cast<off_t>(size) - 1));
  });
}

// Sends to a simulated socket.
ssize_t send_copy(int fd, int file, off_t at, std::size_t size) {
  std::vector<char> part(size);
  const ssize_t got = detail::or_errno(::pread(file, part.data(), size, at));
  return got <= 0 ? got : detail::kernel::send(fd, part.data(), static_cast<std::size_t>(got), 0);
}

}  // namespace

std::size_t tcp_stream::send_file(int file, std::uint64_t offset, std::size_t size, std::error_code& error) {
  error.clear();
  std::size_t sent = 0;
  while (sent < size) {
    detail::socket* const to = socket_.get(error);
    if (!to) break;
    const auto at = static_cast<off_t>(offset + sent);
    const std::size_t part = std::min(size - sent, part_size);
    bring_into_memory(file, at, part);
    const std::size_t done = to->send(error, [&](int fd) {
      off_t from = at;
      if (detail::network_of(fd)) return send_copy(fd, file, at, part);
      return detail::write_quietly([&] { return ::sendfile(fd, file, &from, part); });
    });
    if (done == 0) break;
    sent += done;
  }
  return sent;
}

std::size_t tcp_stream::send_file(int file, std::uint64_t offset, std::size_t size) {
  std::error_code error;
  const std::size_t sent = send_file(file, offset, size, error);
  throw_if(error, "sending a file to");
  return sent;
}

}  // namespace ulexite::net
