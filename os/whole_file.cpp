#include <ulexite/base/nul.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/file_calls.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ulexite {
namespace {

using detail::open_now;
using detail::or_errno;
using detail::until_not_interrupted;

int read_to_end(int fd, std::string& into) {
  constexpr std::size_t least_room = 4096;
  struct stat status;
  std::size_t room = least_room;
  if (::fstat(fd, &status) == 0 && status.st_size > 0) room += static_cast<std::size_t>(status.st_size);
  into.resize(room);
  for (std::size_t done = 0;;) {
    if (done == into.size()) into.resize(done + std::max(least_room, done));
    const ssize_t got = until_not_interrupted([&] { return ::read(fd, into.data() + done, into.size() - done); });
    done += static_cast<std::size_t>(got > 0 ? got : 0);
    if (got <= 0) {
      into.resize(done);
      return static_cast<int>(got);
    }
  }
}

int write_from_start(int fd, std::string_view data) noexcept {
  std::size_t done = 0;
  return detail::in_parts(data.size(), done,
                          [&](std::size_t at) { return ::write(fd, data.data() + at, data.size() - at); });
}

}  // namespace

std::string read_all(const std::filesystem::path& path, std::error_code& error) {
  std::string content;
  detail::on_pool(error, [&] {
    const file from = file::adopt(open_now(path.native(), O_RDONLY | O_CLOEXEC, 0), {});
    return from.is_open() ? read_to_end(from.native_handle(), content) : from.native_handle();
  });
  return content;
}

std::string read_all(const std::filesystem::path& path) {
  std::error_code error;
  std::string content = read_all(path, error);
  detail::throw_if(error, "reading", path);
  return content;
}

void write_all(const std::filesystem::path& path, std::string_view data, std::error_code& error) {
  detail::on_pool(error, [&] {
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
  detail::throw_if(error, "writing", path);
}

namespace {

// A file that will replace another one at the rename. Its functions return -errno on an error.
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
    struct stat old{};
    const bool replaces = ::lstat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
    if (const int fd = make(replaces ? old.st_mode & 0700 : static_cast<mode_t>(default_permissions)); fd < 0)
      return fd;
    int result = write_from_start(file_.native_handle(), data);
    if (result == 0 && replaces) result = take_permissions(old);  // now, because a write takes set-user-ID away
    if (result == 0) result = until_not_interrupted([&] { return ::fsync(file_.native_handle()); });
    return result;
  }
  // The new file may have another owner, with more rights. It is not to run with those. If it cannot have the old
  // file's group, members of the old and of the new group may do only what both the group and all others might.
  int take_permissions(const struct stat& old) {
    struct stat mine{};
    if (::fstat(file_.native_handle(), &mine) != 0) return -errno;
    mode_t allowed = old.st_mode & 07777;
    if (mine.st_uid != old.st_uid) allowed &= ~static_cast<mode_t>(S_ISUID);
    if (mine.st_gid != old.st_gid && ::fchown(file_.native_handle(), static_cast<uid_t>(-1), old.st_gid) != 0) {
      const mode_t common = (allowed >> 3) & allowed & 07;
      allowed = (allowed & ~static_cast<mode_t>(S_ISGID | 077)) | common << 3 | common;
    }
    return detail::or_errno(::fchmod(file_.native_handle(), allowed));
  }
  int put_in_place() {
    const int result = or_errno(::rename(name_.c_str(), path_.c_str()));
    if (result < 0) return result;
    file_ = file();
    return sync_directory();
  }

 private:
  // Makes a file with a new name, which is short, because the name of the file may be the longest. It does not use
  // mkstemp, because the new file must have ordinary permissions. While it replaces another, no other user may open it.
  int make(mode_t permissions) {
    for (int attempt = 0;; ++attempt) {
      name_ = (parent() / (".ulexite." + std::to_string(detail::random_below(UINT32_MAX)))).native();
      const int fd = open_now(name_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
      if (fd == -EEXIST && attempt < 100) continue;
      file_ = file::adopt(fd, {});
      return fd;
    }
  }
  [[nodiscard]] std::filesystem::path parent() const { return std::filesystem::path(path_).parent_path(); }
  [[nodiscard]] int sync_directory() const {
    const auto of = parent();
    const int fd = open_now(of.empty() ? "." : of.native(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd == -EACCES) return 0;  // a directory that may be written but not read
    if (fd < 0) return fd;
    const file directory = file::adopt(fd, {});
    const int result = until_not_interrupted([&] { return ::fsync(fd); });
    return result == -EINVAL ? 0 : result;  // some file systems do not support it
  }

  const std::string& path_;
  std::string name_;
  file file_;
};

}  // namespace

void replace_file(const std::filesystem::path& path, std::string_view data, std::error_code& error) {
  detail::on_pool(error, [&] {
    replacement made(path.native());
    const int result = made.write(data);
    return result < 0 ? result : made.put_in_place();
  });
}

void replace_file(const std::filesystem::path& path, std::string_view data) {
  std::error_code error;
  replace_file(path, data, error);
  detail::throw_if(error, "replacing", path);
}

}  // namespace ulexite
