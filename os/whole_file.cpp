#include <ulexite/base/nul.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ulexite::os {
namespace {

using detail::open_now;
using detail::result_or_errno;
using detail::retry_on_eintr;

int read_to_end(int fd, std::string& into) {
  constexpr std::size_t least_room = 4096;
  struct stat status;
  std::size_t room = least_room;
  if (::fstat(fd, &status) == 0 && status.st_size > 0) room += static_cast<std::size_t>(status.st_size);
  into.resize(room);
  for (std::size_t done = 0;;) {
    if (done == into.size()) into.resize(done + std::max(least_room, done));
    const ssize_t got = retry_on_eintr([&] { return ::read(fd, into.data() + done, into.size() - done); });
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
    const int fd = open_now(path.native(), O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    const file from = file::adopt(fd, {});
    return read_to_end(fd, content);
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
    const int fd = open_now(path.native(), flags, static_cast<mode_t>(default_permissions));
    if (fd < 0) return fd;
    file to = file::adopt(fd, {});
    const int written = write_from_start(fd, data);
    const int closed = result_or_errno(::close(to.release()));
    return written < 0 ? written : closed == -EINTR ? 0 : closed;
  });
}

void write_all(const std::filesystem::path& path, std::string_view data) {
  std::error_code error;
  write_all(path, data, error);
  detail::throw_if(error, "writing", path);
}

namespace {

// How the new file is written. Without a name it goes with the process, if that is killed. Some file systems, and a
// system without /proc, cannot do it.
enum class way { unnamed, named };
constexpr int needs_a_name = 1;  // a result: they cannot

// A file that will replace another one. Its functions return -errno on an error.
class replacement {
 public:
  replacement(const std::string& path, way made) : path_(path), made_(made) {}
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;
  ~replacement() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  int write(std::string_view data) {
    if (detail::has_nul(path_)) return -EINVAL;
    struct stat old{};
    const bool replaces = ::lstat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
    if (const int result = make(replaces ? old.st_mode & 0700 : static_cast<mode_t>(default_permissions)); result != 0)
      return result;
    int result = write_from_start(file_.native_handle(), data);
    if (result == 0 && replaces) result = take_permissions(old);  // now, because a write takes set-user-ID away
    if (result == 0) result = retry_on_eintr([&] { return ::fsync(file_.native_handle()); });
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
    return detail::result_or_errno(::fchmod(file_.native_handle(), allowed));
  }
  int put_in_place() {
    if (made_ == way::unnamed && with_new_name([&] { return link_to(name_); }) != 0) return needs_a_name;
    const int result = result_or_errno(::rename(name_.c_str(), path_.c_str()));
    if (result < 0) return result;
    name_.clear();
    return sync_directory();
  }

 private:
  // It does not use mkstemp, because the new file must have ordinary permissions. While it replaces another, no other
  // user may open it.
  int make(mode_t permissions) {
    const auto keep = [&](int fd) {
      if (fd < 0) return fd;
      file_ = file::adopt(fd, {});
      return 0;
    };
    if (made_ == way::named)
      return with_new_name([&] { return keep(open_now(name_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)); });
    const int result = keep(open_now(directory(), O_WRONLY | O_TMPFILE | O_CLOEXEC, permissions));
    return result == 0 && ::access(by_descriptor().c_str(), F_OK) == 0 ? 0 : needs_a_name;
  }
  // Calls make() with a new name_, which is short, because the name of the file may be the longest.
  template <class Make>
  int with_new_name(Make&& make) {
    for (int attempt = 0;; ++attempt) {
      name_ = (parent() / (".ulexite." + std::to_string(detail::random_below(UINT32_MAX)))).native();
      const int result = make();
      if (result == -EEXIST && attempt < 100) continue;
      if (result != 0) name_.clear();
      return result;
    }
  }
  // Not through /proc/self, which has no descriptors once the main thread has ended.
  [[nodiscard]] std::string by_descriptor() const {
    return "/proc/thread-self/fd/" + std::to_string(file_.native_handle());
  }
  [[nodiscard]] int link_to(const std::string& name) const {
    return result_or_errno(::linkat(AT_FDCWD, by_descriptor().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW));
  }
  [[nodiscard]] std::filesystem::path parent() const { return std::filesystem::path(path_).parent_path(); }
  [[nodiscard]] std::string directory() const { return parent().empty() ? "." : parent().native(); }
  [[nodiscard]] int sync_directory() const {
    const int fd = open_now(directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd == -EACCES) return 0;  // a directory that may be written but not read
    if (fd < 0) return fd;
    const file opened = file::adopt(fd, {});
    const int result = retry_on_eintr([&] { return ::fsync(fd); });
    return result == -EINVAL ? 0 : result;  // some file systems do not support it
  }

  const std::string& path_;
  const way made_;
  std::string name_;  // in the directory, until it has the name of path_
  file file_;
};

}  // namespace

void replace_file(const std::filesystem::path& path, std::string_view data, std::error_code& error) {
  detail::on_pool(error, [&] {
    const auto replace = [&](way by) {
      replacement made(path.native(), by);
      const int result = made.write(data);
      return result == 0 ? made.put_in_place() : result;
    };
    const int result = replace(way::unnamed);
    return result == needs_a_name ? replace(way::named) : result;
  });
}

void replace_file(const std::filesystem::path& path, std::string_view data) {
  std::error_code error;
  replace_file(path, data, error);
  detail::throw_if(error, "replacing", path);
}

}  // namespace ulexite::os
