#include <ulexite/net/pool_call.hpp>
#include <ulexite/os/file_calls.hpp>
#include <ulexite/os/unwaiting_calls.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

void unwaiting_calls::ask(int fd) noexcept {
  const bool writes = how_ == access::write;
  if (!is_cached(fd, how_) || (!writes && !reads_end_right())) return learn(refused);
  // XFS takes writes that must not wait, but refuses many, because they change the time of the last write.
  learn(writes && is_on_local_disk(fd) ? seldom : taken);
}

// A file system without RWF_NOWAIT may read from its disk each time.
void unwaiting_calls::find_out(int fd) noexcept {
  if (known() != unknown) return;
  const auto kind = file_system_of(fd);
  const bool cached = how_ == access::write && kind == OVERLAYFS_SUPER_MAGIC;
  learn(is_in_memory(kind) ? needless : cached ? seldom : refused);
}

// The files of btrfs lie on disks of this machine, although its device number does not tell. The layers of overlayfs do
// as a rule.
unwaiting_calls::answer opens_in(int fd) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return unwaiting_calls::refused;
  if (major(status.st_dev) != 0) return unwaiting_calls::needless;
  const auto kind = file_system_of(fd);
  if (is_in_memory(kind) || kind == BTRFS_SUPER_MAGIC) return unwaiting_calls::needless;
  return kind == OVERLAYFS_SUPER_MAGIC ? unwaiting_calls::seldom : unwaiting_calls::refused;
}

}  // namespace ulexite::detail
