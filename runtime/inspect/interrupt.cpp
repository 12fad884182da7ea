// A handler may unwind only if libgcc finds the tables of a frame without a lock. It does so since glibc 2.35, which
// has _dl_find_object for that. SIGURG is ignored unless it is handled, so a late one does no harm.
//
// State
//   at      idle -> asked, by the asker; asked -> taking -> taken, by the thread that was asked; then idle, by the
//           asker.
//
// Pairings
//   A  the asker stores asked, release  ->  the handler's exchange, acquire: it sees the asked thread, and the room.
//   B  the handler stores taken, release  ->  the asker loads it, acquire: it sees the addresses.

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/signals.hpp>
#include <ulexite/runtime/inspect/interrupt.hpp>
#include <ulexite/runtime/inspect/report.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

#include <features.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

namespace ulexite::detail {
namespace {

#if !ULEXITE_TSAN && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)  // ThreadSanitizer puts signals off
constexpr bool is_safe = true;
#else
constexpr bool is_safe = false;
#endif

constexpr std::chrono::milliseconds patience{300};

enum class stage : int { idle, asked, taking, taken };

struct interruption {
  std::mutex one_at_a_time;
  std::atomic<stage> at{stage::idle};
  std::atomic<int> thread{0};  // State: the thread that is asked. Written with one_at_a_time held.
  std::array<void*, most_frames> frames{};
  std::size_t count = 0;
  bool in_handler = true;  // the next frames are the handler's
};
interruption interrupted;

// The frames above the interrupted frame are the handler's.
_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void*) {
  interruption& of = interrupted;
  int by_signal = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &by_signal);
  if (by_signal != 0) of.in_handler = false;
  if (of.in_handler) return _URC_NO_REASON;
  if (address == 0 || of.count == of.frames.size()) return _URC_END_OF_STACK;
  // As a return address, which is behind the instruction.
  of.frames[of.count++] = reinterpret_cast<void*>(address + (by_signal != 0 ? 1 : 0));
  return _URC_NO_REASON;
}

void take_frames(int) noexcept {
  const int error = errno;
  interruption& of = interrupted;
  stage expected = stage::asked;
  if (of.thread.load(std::memory_order_relaxed) == ::gettid() &&                         // hint, the exchange decides
      of.at.compare_exchange_strong(expected, stage::taking, std::memory_order_acquire,  // A
                                    std::memory_order_relaxed)) {
    of.count = 0;
    of.in_handler = true;
    _Unwind_Backtrace(visit_frame, nullptr);
    of.at.store(stage::taken, std::memory_order_release);  // B
  }
  errno = error;
}

// Waits until it is done, or could not begin in time.
bool interrupt(int thread) noexcept {
  interruption& it = interrupted;
  it.thread.store(thread, std::memory_order_relaxed);    // published by A
  it.at.store(stage::asked, std::memory_order_release);  // A
  const bool sent = ::syscall(SYS_tgkill, ::getpid(), thread, SIGURG) == 0;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (it.at.load(std::memory_order_acquire) != stage::taken) {  // B
    stage expected = stage::asked;
    if ((!sent || std::chrono::steady_clock::now() > until) &&
        it.at.compare_exchange_strong(expected, stage::idle, std::memory_order_relaxed))  // decides between the two
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  it.at.store(stage::idle, std::memory_order_relaxed);  // the next asker has the mutex
  return true;
}

}  // namespace

std::size_t unwind_running(int thread, std::span<void*> addresses) noexcept {
  if (!is_safe || thread == 0) return 0;
  const std::lock_guard lock(interrupted.one_at_a_time);
  // The first use in a process takes locks, so it must not be the handler's.
  _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
  struct sigaction before{}, ours{};
  ours.sa_handler = take_frames;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may be near its end
  if (::sigaction(SIGURG, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return 0;
  if (::sigaction(SIGURG, &ours, nullptr) != 0) return 0;
  const std::size_t taken = interrupt(thread) ? std::min(interrupted.count, addresses.size()) : 0;
  std::copy_n(interrupted.frames.begin(), taken, addresses.begin());
  restore_action(SIGURG, take_frames, before);
  return taken;
}

}  // namespace ulexite::detail
