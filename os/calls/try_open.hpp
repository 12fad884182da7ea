#pragma once

// Opening files on a worker.
//
// An open that finds its path in memory seldom waits in a file system of this machine. So it is a brief call, which may
// last. In a file system of another machine or process each open may wait for that, so it is for the pool. It is
// recognized by its device number. If it has the number of a disk, the brief call may last.

#include <ulexite/base/standard.hpp>

#include <cstdint>
#include <string>

namespace ulexite::detail {

// openat2, which says how `path` is resolved below `from`. Returns the descriptor or -errno.
int open_resolved(int from, const std::string& path, int flags, unsigned permissions, std::uint64_t resolve) noexcept;

// Opens an existing regular file on this worker, with the flags of open. Returns the descriptor or -ENOENT. -EAGAIN:
// the open might wait, so it is for the pool.
int try_open(const std::string& path, int flags) noexcept;

// The pool has opened `fd`: from now on try_open knows its file system. May wait.
void note_opened(int fd) noexcept;

// Whether opens seldom wait in the file system of `fd`. May wait, because the file system is asked.
bool opens_seldom_wait(int fd) noexcept;

}  // namespace ulexite::detail
