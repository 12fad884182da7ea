#include "beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace http_server {
namespace fs = std::filesystem;
namespace {

// O_NONBLOCK: a pipe must not block the thread until somebody writes.
constexpr int for_reading = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// The kernel sees to it that no step leads out. It refuses links that are absolute, and gives up when directories are
// moved at that moment. Before Linux 5.6, and in some sandboxes, there is no such call. Negative: the error's number.
int open_beneath(int root, const fs::path& below) {
  open_how how{};
  how.flags = for_reading;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, root, below.c_str(), &how, sizeof how);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

int open_step(int from, const fs::path& name, int flags) {
  const int fd = ::openat(from, name.c_str(), flags | O_NOFOLLOW);
  return fd < 0 ? -errno : fd;
}

}  // namespace

directory::directory(const fs::path& path) {
  std::error_code error;
  path_ = fs::canonical(path, error);
  const int fd = error ? -1 : ::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (!error && fd < 0) error.assign(errno, std::system_category());
  if (error) throw std::system_error(error, "cannot serve the directory \"" + path.string() + "\"");
  root_ = ulexite::file::adopt(fd, path_.string());
}

// Asks for the path without links, and then goes it step by step: a link that stands there by now ends the way.
int directory::open_without_links(const fs::path& below) const {
  std::error_code error;
  const fs::path real = fs::canonical(path_ / below, error).lexically_relative(path_);
  if (error) return -error.value();
  if (*real.begin() == "..") return -ENOENT;
  ulexite::file at;
  for (auto step = real.begin();;) {
    const int from = at.is_open() ? at.native_handle() : root_.native_handle();
    const fs::path name = *step++;
    if (step == real.end()) return open_step(from, name, for_reading);
    const int fd = open_step(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fd;
    at = ulexite::file::adopt(fd, {});
  }
}

ulexite::file directory::open(const fs::path& below) const {
  int fd = open_beneath(root_.native_handle(), below);
  if (fd < 0 && fd != -ENOENT) fd = open_without_links(below);
  if (fd < 0) throw std::system_error(-fd, std::system_category(), below.string());
  return ulexite::file::adopt(fd, below.string());
}

}  // namespace http_server
