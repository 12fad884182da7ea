#include <ulexite/net/socket/pool_call.hpp>
#include <ulexite/os/calls/file_calls.hpp>
#include <ulexite/os/calls/nowait_support.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/utsname.h>

#include <cstdio>

namespace ulexite::detail {
namespace {

// Whether a call uses the memory that the kernel keeps of the file. A write with O_DSYNC waits for the disk too. O_SYNC
// has its bit.
bool is_cached(int fd, access how) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & (how == access::write ? O_DSYNC | O_DIRECT : O_DIRECT)) == 0;
}

// Whether it is a regular file on a disk of this machine.
bool is_on_local_disk(int fd) noexcept {
  const struct statx status = status_of(fd);
  return S_ISREG(status.stx_mode) && status.stx_dev_major != 0;
}

// In Linux 5.9 and 5.10 a read that must not wait may report the end before it (preadv2(2), Bugs).
bool reads_end_right() noexcept {
  static const bool right = [] {
    utsname system{};
    unsigned major = 0, minor = 0;
    if (::uname(&system) != 0 || std::sscanf(system.release, "%u.%u", &major, &minor) != 2) return false;
    return major != 5 || (minor != 9 && minor != 10);
  }();
  return right;
}

}  // namespace

void nowait_support::ask(int fd) noexcept {
  const bool writes = how_ == access::write;
  const bool cached = known() == opened || is_cached(fd, how_);
  if (!cached || (!writes && !reads_end_right())) return learn(refused);
  // XFS takes writes that must not wait, but refuses many, because they change the time of the last write.
  learn(writes && is_on_local_disk(fd) ? rarely_blocks : nowait);
}

// A file system without RWF_NOWAIT may read from its disk each time.
void nowait_support::find_out(int fd) noexcept {
  if (known() != unknown) return;
  const auto kind = file_system_of(fd);
  const bool cached = how_ == access::write && kind == OVERLAYFS_SUPER_MAGIC;
  learn(is_in_memory(kind) ? never_blocks : cached ? rarely_blocks : refused);
}

}  // namespace ulexite::detail
