#include <ulexite/base/nul.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/calls/try_open.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace ulexite::detail {
namespace {

// Minor numbers of file systems without a disk's number. Opens seldom wait in the local one, and may wait in the other.
// Both are the last that was seen; 0: none was. A number can come to another file system.
constinit std::atomic<unsigned> local_device{0}, other_device{0};

int open_cached(const std::string& path, int flags) noexcept {
  return open_resolved(AT_FDCWD, path, flags, 0, RESOLVE_CACHED);
}

bool is_local_file(int fd) noexcept {
  const struct statx status = status_of(fd);
  return S_ISREG(status.stx_mode) &&
         (status.stx_dev_major != 0 || status.stx_dev_minor == local_device.load(std::memory_order_relaxed));  // hint
}

}  // namespace

int open_resolved(int from, const std::string& path, int flags, unsigned permissions, std::uint64_t resolve) noexcept {
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.mode = (flags & O_CREAT) != 0 ? permissions : 0;
  how.resolve = resolve;
  return static_cast<int>(retry_on_eintr([&] { return ::syscall(SYS_openat2, from, path.c_str(), &how, sizeof how); }));
}

// It looks first, because the open of a pipe or a device has effects, and a remote file system may wait. A file that
// replaces it after the look must not wait either. So O_NONBLOCK is set, which regular files ignore. A look that does
// not help costs a fifth of the trip to the pool. So after one, the next opens go to the pool without a look.
int try_open(const std::string& path, int flags) noexcept {
  static constinit std::atomic<int> looks_left_out{0};
  if ((flags & (O_CREAT | O_TRUNC)) != 0 || has_nul(path)) return -EAGAIN;
  const int left_out = looks_left_out.load(std::memory_order_relaxed);  // hint
  if (left_out > 0) {
    looks_left_out.store(left_out - 1, std::memory_order_relaxed);  // hint
    return -EAGAIN;
  }
  const int seen = open_cached(path, O_PATH | O_CLOEXEC);
  if (seen == -ENOENT) return seen;
  int fd = -EAGAIN;
  if (seen >= 0 && is_local_file(seen))
    brief_call([&] { fd = open_cached(path, flags | O_NONBLOCK | O_NOCTTY); });
  else
    looks_left_out.store(15, std::memory_order_relaxed);  // hint
  if (seen >= 0) ::close(seen);
  return fd >= 0 || fd == -ENOENT ? fd : -EAGAIN;
}

// Another machine is not asked again for each of its files.
void note_opened(int fd) noexcept {
  if (fd < 0) return;
  const struct statx status = status_of(fd);
  const unsigned device = status.stx_dev_minor;
  if (status.stx_dev_major != 0 || device == other_device.load(std::memory_order_relaxed)) return;  // hint
  const bool local = opens_seldom_wait(fd);
  if (!local && device == local_device.load(std::memory_order_relaxed))            // hint
    local_device.store(0, std::memory_order_relaxed);                              // hint
  (local ? local_device : other_device).store(device, std::memory_order_relaxed);  // hint
}

// The files of btrfs lie on disks of this machine, although its device number does not tell. The layers of overlayfs do
// as a rule. Some file systems of other processes have a disk's number.
bool opens_seldom_wait(int fd) noexcept {
  const auto kind = file_system_of(fd);
  if (is_in_memory(kind) || kind == BTRFS_SUPER_MAGIC || kind == OVERLAYFS_SUPER_MAGIC) return true;
  return kind != FUSE_SUPER_MAGIC && status_of(fd).stx_dev_major != 0;
}

}  // namespace ulexite::detail
