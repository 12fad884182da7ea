#include <ulexite/net/socket/no_sigpipe.hpp>
#include <ulexite/net/socket/pool_call.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

namespace ulexite::net {
namespace {

// A part costs five system calls, and some 0.7 ms of processor time if the socket takes all of it.
constexpr std::size_t part_size = 2048 * 1024, copied_part_size = 64 * 1024;
// What one readahead brings into memory. Of more the kernel brings only as much as the disk's limit says.
constexpr std::size_t readahead_size = 128 * 1024;

// Tries to read a byte without a wait: 1 if it is in memory, 0 at the end of the file, or -errno.
ssize_t peek(int file, off_t at) noexcept {
  char byte;
  const iovec into{&byte, 1};
  return detail::result_or_errno(::preadv2(file, &into, 1, at, RWF_NOWAIT));
}

// The last byte of a part. If the file ends within the part, its last byte.
off_t last_of(int file, off_t at, std::size_t size) noexcept {
  struct statx status{};
  off_t end = at + static_cast<off_t>(size);
  if (::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &status) == 0)
    end = std::min(end, std::max(at + 1, static_cast<off_t>(status.stx_size)));
  return end - 1;
}

// What sendfile would do with a part.
enum class prospect { ready, waits_for_disk, unknown };

// If the last byte of a part is in memory, the others most likely are too.
prospect look(int file, off_t at, std::size_t size) noexcept {
  ssize_t got = peek(file, at + static_cast<off_t>(size) - 1);
  if (got == 0) got = peek(file, last_of(file, at, size));
  return got >= 0 ? prospect::ready : detail::refuses_nowait(got) ? prospect::unknown : prospect::waits_for_disk;
}

// sendfile waits for the disk, and would block the worker with all of its fibers. So the pool first reads a part that
// is not in memory. sendfile reports the errors.
void bring_into_memory(int file, off_t at, std::size_t size, std::error_code& error) {
  detail::on_pool(error, [=] {
    char byte;
    for (std::size_t begun = 0; begun < size; begun += readahead_size)
      ::readahead(file, at + static_cast<off_t>(begun), std::min(readahead_size, size - begun));
    [[maybe_unused]] const ssize_t got = ::pread(file, &byte, 1, last_of(file, at, size));
    return 0;
  });
}

// A file system without its own disk may wait for another machine or process at each call, also for what is in memory.
// So the pool reads a copy of the part, and the worker sends that. Returns false for a file system in memory, which
// never waits, and for what cannot be read, because sendfile reports that.
bool read_copy(int file, off_t at, std::vector<char>& part, std::error_code& error) {
  bool copied = false;
  detail::on_pool(error, [&] {
    if (detail::is_in_memory(detail::file_system_of(file))) return 0;
    const ssize_t got = ::pread(file, part.data(), part.size(), at);
    copied = got >= 0;
    part.resize(copied ? static_cast<std::size_t>(got) : 0);
    return 0;
  });
  return copied;
}

// A socket that has just taken less than it was given has room again with each packet that the peer confirms. To send
// so little each time takes half as much processor time again for a large file. Returns whether a third of its buffer
// is free, or three quarters of a Unix socket's. If not, the look has asked for the edge that comes then.
bool is_writable(int fd) noexcept {
  pollfd wanted{fd, POLLOUT, 0};
  return ::poll(&wanted, 1, 0) != 0;
}

// Sends to a simulated socket.
ssize_t send_copy(int fd, int file, off_t at, std::size_t size) {
  std::vector<char> part(size);
  const ssize_t got = detail::result_or_errno(::pread(file, part.data(), size, at));
  return got <= 0 ? got : detail::kernel::send(fd, part.data(), static_cast<std::size_t>(got), 0);
}

}  // namespace

std::size_t tcp_stream::send_file(int file, std::uint64_t offset, std::size_t size, std::error_code& error) {
  error.clear();
  constexpr auto last = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset > last) {
    error = std::make_error_code(std::errc::invalid_argument);
    return 0;
  }
  size = std::min<std::uint64_t>(size, last - offset);  // no file is longer
  std::size_t sent = 0;
  bool never_waits = false, took_less = false;
  while (sent < size) {
    detail::socket* const to = socket_.get(error);
    if (!to) break;
    const auto at = static_cast<off_t>(offset + sent);
    const std::size_t part = std::min(size - sent, part_size);
    const prospect seen = never_waits ? prospect::ready : look(file, at, part);
    if (seen == prospect::waits_for_disk) bring_into_memory(file, at, part, error);
    if (seen == prospect::unknown) {
      std::vector<char> copy(std::min(part, copied_part_size));
      if (read_copy(file, at, copy, error)) {
        const std::size_t done = write(copy.data(), copy.size(), error);
        sent += done;
        if (error || done == 0) break;
        continue;
      }
      never_waits = true;
    }
    if (error) break;
    const std::size_t done = to->send(error, [&](int fd) {
      off_t from = at;
      if (detail::network_of(fd)) return send_copy(fd, file, at, part);
      if (std::exchange(took_less, false) && !is_writable(fd)) return ssize_t{-EAGAIN};
      return detail::write_without_sigpipe([&] { return ::sendfile(fd, file, &from, part); });
    });
    if (done == 0) break;
    took_less = done < part && last_of(file, at, part) >= at + static_cast<off_t>(done);  // not if the file ends there
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
