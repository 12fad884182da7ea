#pragma once

// System calls on files that may wait for a disk, or for another machine or process. So they are made on the pool
// behind blocking(). Internal: not for users.

#include <ulexite/sync/blocking.hpp>

#include <linux/magic.h>
#include <sys/vfs.h>

#include <system_error>

namespace ulexite::detail {

// Makes `call`, a system call that returns -errno, on the pool. Returns -1 and sets `error` if it fails or is not made.
template <class Call>
auto on_pool(std::error_code& error, Call&& call) -> decltype(call()) try {
  error.clear();
  const auto result = blocking(call);
  if (result < 0) error.assign(static_cast<int>(-result), std::system_category());
  return result < 0 ? -1 : result;
} catch (const std::system_error& refused) {  // cancelled, or no thread
  error = refused.code();
  return -1;
}

// Whether the file is in a file system in memory, where no call waits. Asks the file system, so it is for the pool.
inline bool in_memory_file_system(int fd) noexcept {
  struct statfs status{};
  return ::fstatfs(fd, &status) == 0 && (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

}  // namespace ulexite::detail
