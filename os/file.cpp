#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/calls/try_open.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>

namespace ulexite::detail {

int flags_of(os::open_mode mode) {
  using os::open_mode;
  const auto has = [](open_mode set, open_mode one) { return (set & one) != open_mode{}; };
  const bool reads = has(mode, open_mode::read), writes = has(mode, open_mode::write);
  const bool changes = (static_cast<unsigned>(mode) & ~static_cast<unsigned>(open_mode::read)) != 0;
  if (!writes && (changes || !reads))
    throw usage_error("a file cannot be opened with mode " + std::to_string(static_cast<unsigned>(mode)) +
                      (changes ? ", which lacks open_mode::write" : ", which neither reads nor writes"));
  int flags = O_CLOEXEC | (reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY);
  if (has(mode, open_mode::create)) flags |= O_CREAT;
  if (has(mode, open_mode::exclusive)) flags |= O_EXCL;
  if (has(mode, open_mode::truncate)) flags |= O_TRUNC;
  if (has(mode, open_mode::append)) flags |= O_APPEND;
  return flags;
}

}  // namespace ulexite::detail

namespace ulexite::os {
namespace {

using detail::flags_of;
using detail::in_parts;
using detail::nowait_support;
using detail::on_pool;
using detail::open_now;
using detail::result_or_errno;
using detail::retry_on_eintr;
using detail::throw_if;

constexpr auto any_offset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

// Whether the bytes fit into any file.
bool fits(std::size_t size, std::uint64_t offset) noexcept {
  return offset <= any_offset && size <= any_offset - offset;
}

std::size_t refuse(int why, std::error_code& error) noexcept {
  error.assign(why, std::system_category());
  return 0;
}

// Makes call(part, offset, flags) until all is done, as make_here_or_on_pool. Returns the number of bytes.
template <class Call>
std::size_t transfer(nowait_support& calls, int fd, const void* data, std::size_t size, std::uint64_t offset,
                     std::error_code& error, Call&& call) {
  if (fd < 0) return refuse(EBADF, error);  // also if there is nothing to transfer
  std::size_t done = 0;
  detail::make_here_or_on_pool(calls, fd, size, error, [&](int flags) {
    return in_parts(size, done, [&](std::size_t at) {
      const iovec part{const_cast<char*>(static_cast<const char*>(data)) + at, size - at};
      return call(part, static_cast<off_t>(offset + at), flags);
    });
  });
  return done;
}

}  // namespace

file::file(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions,
           std::error_code& error)
    : file(opened(-1, path)) {
  const int flags = flags_of(mode);
  error = detail::stop_cause(detail::this_agent());
  if (error) return;
  fd_ = detail::try_open(name_, flags);
  if (fd_ == -EAGAIN) {
    fd_ = on_pool(error, [&] {
      const int fd = open_now(name_, flags, static_cast<mode_t>(permissions));
      detail::note_opened(fd);
      return fd;
    });
    return;
  }
  detail::spend_budget();
  if (fd_ < 0) error.assign(-std::exchange(fd_, -1), std::system_category());
}

file::file(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions) {
  std::error_code error;
  *this = file(path, mode, permissions, error);
  check(error, "opening");
}

file file::adopt(int fd, std::string name) {
  if (fd < 0)
    throw std::system_error(EBADF, std::system_category(),
                            "ulexite: adopting fd " + std::to_string(fd) + " as " + detail::shown(name));
  return file(fd, std::move(name));
}

file file::opened(int fd, std::string name) {
  file made(fd, std::move(name));
  made.reads_.learn(nowait_support::opened);
  made.writes_.learn(nowait_support::opened);
  return made;
}

file::~file() {
  if (fd_ >= 0) ::close(fd_);
}

void file::check(std::error_code error, const char* what) const { throw_if(error, what, name_); }

std::size_t file::read_at(void* data, std::size_t size, std::uint64_t offset, std::error_code& error) {
  if (!fits(size, offset)) return refuse(EINVAL, error);
  return transfer(reads_, fd_, data, size, offset, error, [&](const iovec& part, off_t at, int flags) {
    return flags == 0 ? ::preadv(fd_, &part, 1, at) : ::preadv2(fd_, &part, 1, at, flags);
  });
}

std::size_t file::read_at(void* data, std::size_t size, std::uint64_t offset) {
  std::error_code error;
  const std::size_t done = read_at(data, size, offset, error);
  check(error, "reading");
  return done;
}

std::size_t file::write_at(const void* data, std::size_t size, std::uint64_t offset, std::error_code& error) {
  if (!fits(size, offset)) return refuse(EFBIG, error);
  return transfer(writes_, fd_, data, size, offset, error, [&](const iovec& part, off_t at, int flags) {
    return flags == 0 ? ::pwritev(fd_, &part, 1, at) : ::pwritev2(fd_, &part, 1, at, flags);
  });
}

void file::write_at(const void* data, std::size_t size, std::uint64_t offset) {
  std::error_code error;
  write_at(data, size, offset, error);
  check(error, "writing to");
}

// RWF_APPEND does for one call what O_APPEND does for the file.
std::size_t file::append(const void* data, std::size_t size, std::error_code& error) {
  return transfer(writes_, fd_, data, size, 0, error, [&](const iovec& part, off_t, int flags) {
    return ::pwritev2(fd_, &part, 1, 0, flags | RWF_APPEND);
  });
}

void file::append(const void* data, std::size_t size) {
  std::error_code error;
  append(data, size, error);
  check(error, "appending to");
}

std::uint64_t file::size(std::error_code& error) const {
  struct statx status{};
  const int result = result_or_errno(::statx(fd_, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &status));
  error.assign(result < 0 ? -result : 0, std::system_category());
  return result < 0 ? 0 : status.stx_size;
}

std::uint64_t file::size() const {
  std::error_code error;
  const std::uint64_t size = this->size(error);
  check(error, "asking for the size of");
  return size;
}

void file::truncate(std::uint64_t size, std::error_code& error) {
  on_pool(error, [&] {
    if (!fits(0, size)) return -EFBIG;
    return retry_on_eintr([&] { return ::ftruncate(fd_, static_cast<off_t>(size)); });
  });
}

void file::truncate(std::uint64_t size) {
  std::error_code error;
  truncate(size, error);
  check(error, "truncating");
}

void file::sync(std::error_code& error) {
  on_pool(error, [&] { return retry_on_eintr([&] { return ::fsync(fd_); }); });
}

void file::sync() {
  std::error_code error;
  sync(error);
  check(error, "syncing");
}

// Linux has closed the descriptor whatever close returns, even EINTR, so it must not be closed twice.
void file::close(std::error_code& error) {
  error.clear();
  if (fd_ < 0) return;
  const shield until_closed;
  const int fd = std::exchange(fd_, -1);
  int result = 0;
  bool closed = false;
  const auto close = [&] {
    closed = true;
    result = result_or_errno(::close(fd));
    return 0;
  };
  if (writes_.known() == nowait_support::rarely_blocks) detail::brief_call(close);
  try {
    if (!closed && !detail::this_agent().waits_forbidden) on_pool(error, close);
  } catch (const std::bad_alloc&) {  // the pool has no thread, and gets none
  }
  if (!closed) close();
  error.assign(result == -EINTR ? 0 : -result, std::system_category());
}

void file::close() {
  std::error_code error;
  close(error);
  check(error, "closing");
}

}  // namespace ulexite::os
