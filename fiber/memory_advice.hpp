#pragma once

// Gives the kernel one advice on many ranges of memory, with one system call if possible.

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

// Gives `advice` (of madvise) on each of up to 1024 `ranges` of whole pages, in order. Returns the number of accepted
// ranges; the kernel refused the next one, and errno is set. Makes one system call from Linux 6.14 on (process_madvise
// on its own process). On older kernels, and where this call is forbidden, it makes one call for each range. Any
// thread.
std::size_t advise(std::span<const iovec> ranges, int advice) noexcept;

}  // namespace ulexite::detail
