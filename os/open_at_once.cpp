#include <ulexite/base/nul.hpp>
#include <ulexite/os/file_calls.hpp>
#include <ulexite/os/open_at_once.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace ulexite::detail {
namespace {

int open_cached(const std::string& path, int flags) noexcept {
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = RESOLVE_CACHED;
  return static_cast<int>(
      until_not_interrupted([&] { return ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how); }));
}

// The device number of the last file system without a disk's number in which opens were found not to wait, or seldom;
// 0 if there was none. The number can come to another file system. So the opens there are brief calls, which may last.
constinit std::atomic<unsigned> local_device{0};

// How a file that was opened with O_PATH may be opened to be used. Never waits.
unwaiting_calls::answer opens_of(int seen) noexcept {
  struct statx status{};
  if (::statx(seen, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 || !S_ISREG(status.stx_mode))
    return unwaiting_calls::refused;
  if (status.stx_dev_major != 0) return unwaiting_calls::needless;
  const bool local = status.stx_dev_minor == local_device.load(std::memory_order_relaxed);  // hint
  return local ? unwaiting_calls::seldom : unwaiting_calls::refused;
}

// Opens an existing file on this worker. Returns -ENOENT if there is none, and -EAGAIN if the open might wait. A file
// that replaces it after the check must not wait either. So O_NONBLOCK is set, which regular files ignore.
int look_and_open(const std::string& path, int flags) noexcept {
  const int seen = open_cached(path, O_PATH | O_CLOEXEC);
  if (seen < 0) return seen;
  unwaiting_calls opens(access::read);
  opens.learn(opens_of(seen));
  const auto fd = make_here(opens, seen, [&](int) { return open_cached(path, flags | O_NONBLOCK | O_NOCTTY); });
  ::close(seen);
  return static_cast<int>(fd);
}

}  // namespace

// A check that does not help costs a fifth of the trip to the pool. So after one, the next opens go to the pool without
// a check.
int open_at_once(const std::string& path, int flags) noexcept {
  static constinit std::atomic<int> looks_left_out{0};
  if ((flags & (O_CREAT | O_TRUNC)) != 0 || has_nul(path)) return -EAGAIN;
  const int left_out = looks_left_out.load(std::memory_order_relaxed);  // hint
  const int result = left_out > 0 ? -EAGAIN : look_and_open(path, flags);
  const bool answers = result >= 0 || result == -ENOENT;
  if (!answers || left_out > 0)
    looks_left_out.store(left_out > 0 ? left_out - 1 : 15, std::memory_order_relaxed);  // hint
  return answers ? result : -EAGAIN;
}

void note_opened(int fd) noexcept {
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0 || major(status.st_dev) != 0) return;
  const unsigned device = minor(status.st_dev);
  if (device == local_device.load(std::memory_order_relaxed)) return;                                   // hint
  if (opens_in(fd) != unwaiting_calls::refused) local_device.store(device, std::memory_order_relaxed);  // hint
}

}  // namespace ulexite::detail
