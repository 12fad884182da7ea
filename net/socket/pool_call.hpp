#pragma once

// System calls on files that may wait for a disk, or for another machine or process. So they are made on the pool
// behind blocking().

#include <ulexite/sync/blocking.hpp>

#include <linux/magic.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include <cerrno>
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

// The kind of the file's file system, as in linux/magic.h; 0 if it does not tell. It is asked, so this is for the pool.
inline decltype(statfs::f_type) file_system_of(int fd) noexcept {
  struct statfs status{};
  return ::fstatfs(fd, &status) == 0 ? status.f_type : 0;
}

// Whether such a file system keeps its files in memory, so that no call waits.
constexpr bool is_in_memory(decltype(statfs::f_type) kind) noexcept {
  return kind == TMPFS_MAGIC || kind == RAMFS_MAGIC;
}

// Whether this result of a call with RWF_NOWAIT means that such calls are not to be had here: the file system does not
// know them, or a sandbox refuses preadv2.
constexpr bool refuses_nowait(ssize_t result) noexcept { return result == -EOPNOTSUPP || result == -EPERM; }

}  // namespace ulexite::detail
