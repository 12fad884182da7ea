#include <ulexite/base/nul.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/calls/try_open.hpp>
#include <ulexite/os/directory.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace ulexite::os {
namespace fs = std::filesystem;
namespace {

using detail::on_pool;
using detail::retry_on_eintr;

// The kernel ensures that no step leads outside. It refuses absolute links, and gives up when directories are moved at
// that moment. Before Linux 5.6, and in some sandboxes, there is no such call.
int open_beneath(int root, const std::string& below, int flags, unsigned permissions, unsigned resolve) noexcept {
  return detail::open_resolved(root, below, flags, permissions, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve);
}

int open_step(int from, const fs::path& name, int flags, unsigned permissions) noexcept {
  return retry_on_eintr([&] { return ::openat(from, name.c_str(), flags | O_NOFOLLOW, permissions); });
}

}  // namespace

directory::directory(const fs::path& path, std::error_code& error) {
  on_pool(error, [&] {
    if (detail::has_nul(path.native())) return -EINVAL;
    path_ = fs::canonical(path, error);
    if (error) return -error.value();
    std::string name = path_.native();
    const int fd = detail::result_or_errno(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return fd;
    root_ = file::adopt(fd, std::move(name));
    local_ = detail::opens_seldom_wait(fd);
    return fd;
  });
}

directory::directory(const fs::path& path) {
  std::error_code error;
  *this = directory(path, error);
  detail::throw_if(error, "opening the directory", path);
}

// Resolves the links first, and then opens the path step by step. A link that has appeared since then is an error. No
// step of `below` may lead outside: whether a path that comes back is found would tell what exists there. A failure may
// concern what is outside, unless the kernel has failed inside in the same way. So `kernels`, its -errno, tells.
int directory::open_without_links(const std::string& below, int flags, unsigned permissions, int kernels) const {
  fs::path so_far = path_, real = ".";
  const fs::path asked = below;
  for (auto step = asked.begin(); step != asked.end();) {
    const fs::path next = so_far / *step++;
    std::error_code error;
    if ((flags & O_EXCL) != 0 && step == asked.end() && fs::is_symlink(next, error)) return -EEXIST;
    so_far = fs::canonical(next, error);
    if ((flags & O_CREAT) != 0 && step == asked.end() && error == std::errc::no_such_file_or_directory)
      so_far = next;  // to be created
    else if (error)
      return -error.value() == kernels ? kernels : -ENOENT;
    real = so_far.lexically_relative(path_);
    if (real.empty() || *real.begin() == "..") return -ENOENT;
  }
  file at;
  for (auto step = real.begin();;) {
    const int from = at.is_open() ? at.native_handle() : root_.native_handle();
    const fs::path name = *step++;
    if (step == real.end()) {  // a link that leads to nothing may lead outside
      const int fd = open_step(from, name, flags, permissions);
      return fd == -ELOOP && kernels != -ELOOP ? -ENOENT : fd;
    }
    const int fd = open_step(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    at = file::adopt(fd, {});
  }
}

// Opens an existing file on this worker. Fails if its path is not in memory, or leaves the file system of the root:
// then the open might wait.
int directory::try_open(const std::string& below, int flags) const noexcept {
  int fd = -EAGAIN;
  if (local_)
    detail::brief_call([&] { fd = open_beneath(native_handle(), below, flags, 0, RESOLVE_CACHED | RESOLVE_NO_XDEV); });
  return fd;
}

file directory::open(const std::string& below, open_mode mode, fs::perms permissions, std::error_code& error) const {
  const int flags = detail::flags_of(mode) | O_NONBLOCK | O_NOCTTY;  // a pipe must not wait for its other end
  const auto allowed = static_cast<unsigned>(permissions);
  error = detail::stop_cause(detail::this_agent());
  if (error) return {};
  const bool is_none = detail::has_nul(below);
  std::string name = path_.native() + '/' + below;  // before there is a descriptor that an exception would lose
  int fd = is_none ? -EINVAL : -EAGAIN;
  if (!is_none && mode == open_mode::read) fd = try_open(below, flags);
  if (fd >= 0 || fd == -ENOENT || is_none) {
    if (fd < 0) error.assign(-fd, std::system_category());
    detail::spend_budget();
  } else {
    fd = on_pool(error, [&] {
      const int opened = open_beneath(native_handle(), below, flags, allowed, 0);
      return opened >= 0 || opened == -ENOENT ? opened : open_without_links(below, flags, allowed, opened);
    });
  }
  return error ? file() : file::opened(fd, std::move(name));
}

file directory::open(const std::string& below, open_mode mode, fs::perms permissions) const {
  std::error_code error;
  file opened = open(below, mode, permissions, error);
  if (error) detail::throw_if(error, "opening", path_ / below);
  return opened;
}

}  // namespace ulexite::os
