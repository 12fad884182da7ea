#include <ulexite/fiber/memory_advice.hpp>

#include <ulexite/fiber/valgrind.hpp>

#include <atomic>
#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

constexpr int this_process = -10'000;  // PIDFD_SELF_THREAD; threads share their memory. Older headers do not name it

// False once the kernel has refused such calls. Valgrind does not know them, and would print long messages.
std::atomic<bool> takes_many{!under_valgrind()};

// Returns the number of `ranges`, from the first on, for which the kernel took the advice in one call. The kernel
// answers in bytes.
std::size_t advise_at_once(std::span<const iovec> ranges, int advice) noexcept {
  if (ranges.size() < 2 || !takes_many.load(std::memory_order_relaxed)) return 0;  // hint
  long bytes = ::syscall(SYS_process_madvise, this_process, ranges.data(), ranges.size(), advice, 0);
  if (bytes < 0 && (errno == ENOSYS || errno == EBADF || errno == EPERM)) {
    takes_many.store(false, std::memory_order_relaxed);  // hint
  }
  std::size_t done = 0;
  while (done < ranges.size() && bytes >= static_cast<long>(ranges[done].iov_len)) {
    bytes -= static_cast<long>(ranges[done++].iov_len);
  }
  return done;
}

}  // namespace

// A range that was refused in a group is tried alone, because the kernel may have refused only the group.
std::size_t advise(std::span<const iovec> ranges, int advice) noexcept {
  std::size_t done = 0;
  while (done < ranges.size()) {
    const std::size_t at_once = advise_at_once(ranges.subspan(done), advice);
    if (at_once == 0 && ::madvise(ranges[done].iov_base, ranges[done].iov_len, advice) != 0) break;
    done += at_once == 0 ? 1 : at_once;
  }
  return done;
}

}  // namespace ulexite::detail
