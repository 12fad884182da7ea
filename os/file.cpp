#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/file_calls.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace ulexite {
namespace {

using detail::flags_of;
using detail::on_pool;
using detail::or_errno;
using detail::throw_if;
using detail::until_not_interrupted;

constexpr auto any_offset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

bool has(open_mode set, open_mode one) noexcept { return (set & one) != open_mode{}; }

int open_now(const std::string& path, int flags, mode_t permissions) noexcept {
  if (detail::has_nul(path)) return -EINVAL;  // open would take what stands before it
  return until_not_interrupted([&] { return ::open(path.c_str(), flags, permissions); });
}

// Calls part(done) until `size` bytes are done, or there are no more. 0 or -errno.
template <class Part>
int in_parts(std::size_t size, std::size_t& done, Part&& part) noexcept {
  while (done < size) {
    const ssize_t more = until_not_interrupted([&] { return part(done); });
    if (more < 0) return static_cast<int>(more);
    if (more == 0) break;
    done += static_cast<std::size_t>(more);
  }
  return 0;
}

// Whether the bytes fit into any file.
bool fits(std::size_t size, std::uint64_t offset) noexcept {
  return offset <= any_offset && size <= any_offset - offset;
}

int read_to_end(int fd, std::string& into) {
  constexpr std::size_t least_room = 4096;
  struct stat status;
  std::size_t room = least_room;
  if (::fstat(fd, &status) == 0 && status.st_size > 0) room += static_cast<std::size_t>(status.st_size);
  for (std::size_t done = 0;;) {
    into.resize(done + room);
    const ssize_t got = until_not_interrupted([&] { return ::read(fd, into.data() + done, room); });
    done += static_cast<std::size_t>(got > 0 ? got : 0);
    if (got <= 0) {
      into.resize(done);
      return static_cast<int>(got);
    }
    room = std::max(least_room, done);
  }
}

int write_from_start(int fd, std::string_view data) noexcept {
  std::size_t done = 0;
  return in_parts(data.size(), done, [&](std::size_t at) { return ::write(fd, data.data() + at, data.size() - at); });
}

}  // namespace

int detail::flags_of(open_mode mode) {
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

file::file(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions,
           std::error_code& error)
    : name_(path) {
  const int flags = flags_of(mode);
  fd_ = on_pool(error, [&] { return open_now(name_, flags, static_cast<mode_t>(permissions)); });
}

file::file(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions) {
  std::error_code error;
  *this = file(path, mode, permissions, error);
  check(error, "opening");
}

file file::adopt(int fd, std::string name) {
  file taken;
  taken.name_ = std::move(name);
  taken.fd_ = fd;
  return taken;
}

file::~file() {
  if (fd_ >= 0) ::close(fd_);
}

void file::check(std::error_code error, const char* what) const { throw_if(error, what, name_); }

// What lies in the page cache is taken at once, unless it is so much that even copying it would hold up the worker.
std::size_t file::read_at(void* data, std::size_t size, std::uint64_t offset, std::error_code& error) {
  constexpr std::size_t largest_copy = 256 * 1024;
  std::size_t done = 0;
  error = detail::stop_cause(detail::this_agent());
  if (error) return 0;
  if (size <= largest_copy && fits(size, offset)) {
    const int result = in_parts(size, done, [&](std::size_t at) {
      const iovec part{static_cast<char*>(data) + at, size - at};
      return ::preadv2(fd_, &part, 1, static_cast<off_t>(offset + at), RWF_NOWAIT);
    });
    if (result == 0) {
      detail::spend_budget();
      return done;
    }
  }
  on_pool(error, [&] {
    if (!fits(size, offset)) return -EINVAL;
    return in_parts(size, done, [&](std::size_t at) {
      return ::pread(fd_, static_cast<char*>(data) + at, size - at, static_cast<off_t>(offset + at));
    });
  });
  return done;
}

std::size_t file::read_at(void* data, std::size_t size, std::uint64_t offset) {
  std::error_code error;
  const std::size_t done = read_at(data, size, offset, error);
  check(error, "reading");
  return done;
}

std::size_t file::write_at(const void* data, std::size_t size, std::uint64_t offset, std::error_code& error) {
  std::size_t done = 0;
  on_pool(error, [&] {
    if (!fits(size, offset)) return -EFBIG;
    return in_parts(size, done, [&](std::size_t at) {
      return ::pwrite(fd_, static_cast<const char*>(data) + at, size - at, static_cast<off_t>(offset + at));
    });
  });
  return done;
}

void file::write_at(const void* data, std::size_t size, std::uint64_t offset) {
  std::error_code error;
  write_at(data, size, offset, error);
  check(error, "writing to");
}

// RWF_APPEND does for one call what O_APPEND does for the file.
std::size_t file::append(const void* data, std::size_t size, std::error_code& error) {
  std::size_t done = 0;
  on_pool(error, [&] {
    return in_parts(size, done, [&](std::size_t at) {
      const iovec part{const_cast<char*>(static_cast<const char*>(data)) + at, size - at};
      return ::pwritev2(fd_, &part, 1, 0, RWF_APPEND);
    });
  });
  return done;
}

void file::append(const void* data, std::size_t size) {
  std::error_code error;
  append(data, size, error);
  check(error, "appending to");
}

std::uint64_t file::size(std::error_code& error) const {
  struct statx status{};
  const int result = or_errno(::statx(fd_, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &status));
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
    return until_not_interrupted([&] { return ::ftruncate(fd_, static_cast<off_t>(size)); });
  });
}

void file::truncate(std::uint64_t size) {
  std::error_code error;
  truncate(size, error);
  check(error, "truncating");
}

void file::sync(std::error_code& error) {
  on_pool(error, [&] { return until_not_interrupted([&] { return ::fsync(fd_); }); });
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
  bool closed = false;
  on_pool(error, [&] {
    closed = true;
    return or_errno(::close(fd));
  });
  if (!closed) error.assign(-or_errno(::close(fd)), std::system_category());
  if (error == std::errc::interrupted) error.clear();
}

void file::close() {
  std::error_code error;
  close(error);
  check(error, "closing");
}

std::string read_all(const std::filesystem::path& path, std::error_code& error) {
  std::string content;
  on_pool(error, [&] {
    const file from = file::adopt(open_now(path.native(), O_RDONLY | O_CLOEXEC, 0), {});
    return from.is_open() ? read_to_end(from.native_handle(), content) : from.native_handle();
  });
  return content;
}

std::string read_all(const std::filesystem::path& path) {
  std::error_code error;
  std::string content = read_all(path, error);
  throw_if(error, "reading", path);
  return content;
}

void write_all(const std::filesystem::path& path, std::string_view data, std::error_code& error) {
  on_pool(error, [&] {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    file to = file::adopt(open_now(path.native(), flags, static_cast<mode_t>(default_permissions)), {});
    if (!to.is_open()) return to.native_handle();
    const int written = write_from_start(to.native_handle(), data);
    const int closed = or_errno(::close(to.release()));
    return written < 0 ? written : closed == -EINTR ? 0 : closed;
  });
}

void write_all(const std::filesystem::path& path, std::string_view data) {
  std::error_code error;
  write_all(path, data, error);
  throw_if(error, "writing", path);
}

namespace {

// The content of a file that is to take the place of another, until the rename. Its functions return -errno on an error.
class replacement {
 public:
  explicit replacement(const std::string& path) : path_(path) {}
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;
  ~replacement() {
    if (file_.is_open()) ::unlink(name_.c_str());
  }

  int write(std::string_view data) {
    if (detail::has_nul(path_)) return -EINVAL;
    if (const int fd = make(); fd < 0) return fd;
    struct stat old{};
    const bool replaces = ::lstat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
    int result = replaces ? or_errno(::fchmod(file_.native_handle(), old.st_mode & 07777)) : 0;
    if (result == 0) result = write_from_start(file_.native_handle(), data);
    if (result == 0) result = until_not_interrupted([&] { return ::fsync(file_.native_handle()); });
    return result;
  }
  int put_in_place() {
    const int result = or_errno(::rename(name_.c_str(), path_.c_str()));
    if (result < 0) return result;
    file_ = file();
    return sync_directory();
  }

 private:
  // A name that no other file has. Not mkstemp, because the new file is to have the permissions of any other.
  int make() {
    for (int attempt = 0;; ++attempt) {
      name_ = path_ + '.' + std::to_string(detail::random_below(UINT32_MAX));
      const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
      const int fd = open_now(name_, flags, static_cast<mode_t>(default_permissions));
      if (fd == -EEXIST && attempt < 100) continue;
      file_ = file::adopt(fd, {});
      return fd;
    }
  }
  int sync_directory() const {
    const auto parent = std::filesystem::path(path_).parent_path();
    const int fd = open_now(parent.empty() ? "." : parent.native(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    const file directory = file::adopt(fd, {});
    const int result = until_not_interrupted([&] { return ::fsync(fd); });
    return result == -EINVAL ? 0 : result;  // there are file systems that know no such thing
  }

  const std::string& path_;
  std::string name_;
  file file_;
};

}  // namespace

void replace_file(const std::filesystem::path& path, std::string_view data, std::error_code& error) {
  on_pool(error, [&] {
    replacement made(path.native());
    const int result = made.write(data);
    return result < 0 ? result : made.put_in_place();
  });
}

void replace_file(const std::filesystem::path& path, std::string_view data) {
  std::error_code error;
  replace_file(path, data, error);
  throw_if(error, "replacing", path);
}

}  // namespace ulexite
