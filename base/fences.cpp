#include <ulexite/base/atomics.hpp>
#include <ulexite/base/fences.hpp>
#include <ulexite/base/panic.hpp>

#include <atomic>
#include <cerrno>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ulexite::detail {

// This holds in child processes too, because fork keeps the registration. A thread that is not running needs no
// barrier, because its switch was one.
const bool fences_are_asymmetric =
    !ULEXITE_TSAN && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

void heavy_fence() noexcept {
#if !ULEXITE_TSAN
  if (!fences_are_asymmetric) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    panic("membarrier failed although it was registered: error %d", errno);
  }
#endif
}

}  // namespace ulexite::detail
