#include <ulexite/base/atomics.hpp>
#include <ulexite/base/fences.hpp>
#include <ulexite/base/panic.hpp>

#include <atomic>
#include <cerrno>

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ulexite::detail {

// This holds in child processes too, because fork keeps the registration. A thread that is not running needs no
// barrier, because its switch was one.
bool fences_are_asymmetric = false;

// Earlier than the constructors of the program's globals, because one of them may start a runtime.
[[gnu::constructor(101)]] static void choose_fences() noexcept {
  fences_are_asymmetric =
      !ULEXITE_TSAN && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void heavy_fence() noexcept {
#if !ULEXITE_TSAN
  if (!fences_are_asymmetric) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  while (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    if (errno != ENOMEM) panic("membarrier failed although it was registered: error %d", errno);
    ::sched_yield();  // the kernel may need a little memory for it
  }
#endif
}

}  // namespace ulexite::detail
