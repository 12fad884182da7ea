#pragma once

// Telling the kernel the same about many ranges of memory, with one system call where it can be.

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <span>

#include <sys/mman.h>
#include <sys/uio.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102  // Linux 6.13; older C libraries do not name it
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace ulexite::detail {

// Gives `advice` (madvise's) on each of up to 1024 `ranges` of whole pages, in their order. Returns on how many; the
// kernel refused the next (errno says why). One system call from Linux 6.14 on (process_madvise on oneself); one for
// each range before, and where that is forbidden. Any thread.
std::size_t advise(std::span<const iovec> ranges, int advice) noexcept;

}  // namespace ulexite::detail
