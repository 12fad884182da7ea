#pragma once

// Opening files on a worker. Internal: not for users.

#include <ulexite/base/standard.hpp>

#include <string>

namespace ulexite::detail {

// Opens an existing regular file on this worker, with the flags of open. Returns the descriptor or -ENOENT. -EAGAIN: the
// open might wait, so it is for the pool.
int open_at_once(const std::string& path, int flags) noexcept;

// The pool has opened `fd`: later opens in its file system may be made on a worker, if it is local. May wait.
void note_opened(int fd) noexcept;

}  // namespace ulexite::detail
