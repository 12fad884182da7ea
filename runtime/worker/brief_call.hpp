#pragma once

// A system call that is brief as a rule, on the fiber's own worker. If it lasts, the monitor gives the worker to
// another thread, and the fiber keeps its thread as in block_in_place. After the system calls of Go, whose monitor
// takes the processor of a call that lasts (Vyukov, 2012). Internal: not for users.
//
// State
//   lasting_      the calls whose workers other threads have taken over. Raised by these threads, and lowered when the
//                 fiber's context is saved. Below zero if the second comes first.
//   not_before_   until then none is made, nanoseconds. A hint, written by any worker.
//   judged_till_  until then a call is judged, nanoseconds. A hint, written by any worker.
//
// Pairings
//   A  ended lowers lasting_, release  ->  any_lasts loads it, acquire: it sees the fiber's saved context.

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

// How a call went.
enum class call_length : std::uint8_t {
  not_made,  // the caller is no fiber, its worker must keep its thread, or the last calls waited
  brief,     // on the worker
  lasting,   // another thread has taken the worker over
};

// Makes call(data), which must use nothing of this library: its thread may have no worker. Two ticks of the monitor
// after its begin the worker is taken over. So the fibers behind it wait for some 20 ms. During such a call, and for a
// while after one that was judged to have waited, none is made. A stop of the world waits for the end of the call.
call_length brief_call(void (*call)(const void*), const void* data) noexcept;
template <class Call>
call_length brief_call(const Call& call) noexcept {
  return brief_call([](const void* data) { (*static_cast<const Call*>(data))(); }, &call);
}

// The brief calls of one runtime. If a call took a millisecond, it has waited, or the system ran another thread
// meanwhile. Only the thread's number of waits tells, and it costs a system call. So it is asked for only in calls that
// follow a long one soon: these are judged. The first long call is not.
class brief_calls {
 public:
  [[nodiscard]] bool may_begin(std::int64_t now) const noexcept {
    return now >= not_before_.load(std::memory_order_relaxed) && !any_lasts();  // hint
  }
  // The waits of the calling thread until now, if the call that begins is judged. Otherwise unjudged.
  [[nodiscard]] long waits_before(std::int64_t now) const noexcept;
  // The thread has made a call. One that was judged to have waited is followed by a pause, so that workers wait for a
  // small part of their time.
  void note(std::int64_t begin, std::int64_t end, long waits_before) noexcept;
  void lasts() noexcept { lasting_.fetch_add(1, std::memory_order_relaxed); }                              // counter
  void ended() noexcept { lasting_.fetch_sub(1, std::memory_order_release); }                              // A
  [[nodiscard]] bool any_lasts() const noexcept { return lasting_.load(std::memory_order_acquire) != 0; }  // A

 private:
  static constexpr long unjudged = -1;

  std::atomic<int> lasting_{0};
  std::atomic<std::int64_t> not_before_{0};
  std::atomic<std::int64_t> judged_till_{0};
};

}  // namespace ulexite::detail
