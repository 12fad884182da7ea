#pragma once

// A system call that is brief as a rule, on the fiber's own worker. If it lasts, the monitor gives the worker to
// another thread, and the fiber keeps its thread as in block_in_place. After the system calls of Go, whose monitor
// takes the processor of a call that lasts (Vyukov, 2012). Internal: not for users.
//
// State
//   lasting_     the calls whose workers other threads have taken over. Raised by these threads, and lowered when the
//                fiber's context is saved. Below zero if the second comes first.
//   not_before_  until then none is made, nanoseconds. A hint, written by the threads of such calls.
//
// Pairings
//   A  ended lowers lasting_, release  ->  any_lasts loads it, acquire: it sees the fiber's saved context.

#include <ulexite/base/counter.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

// How a call went.
enum class call_length : std::uint8_t {
  not_made,  // the caller is no fiber, its worker must keep its thread, or such a call has lasted
  brief,     // on the worker
  lasting,   // another thread has taken the worker over
};

// Makes call(data), which must use nothing of this library: its thread may have no worker. About two ticks of the
// monitor after its begin the worker is taken over. So the fibers behind it wait for some 20 ms. During such a call,
// and for a while after it, none is made. A stop of the world waits for the end of the call.
call_length brief_call(void (*call)(const void*), const void* data) noexcept;
template <class Call>
call_length brief_call(const Call& call) noexcept {
  return brief_call([](const void* data) { (*static_cast<const Call*>(data))(); }, &call);
}

// The brief calls of one runtime. After a call that lasted there is a pause, so that such calls stop workers only for a
// small part of the time. There is none after a call that ends before its worker is taken over, because a worker waits
// for it as for a fiber that computes.
class brief_calls {
 public:
  [[nodiscard]] bool may_begin() const noexcept {
    const std::int64_t pause = not_before_.get();
    return (pause == 0 || now_ns() >= pause) && !any_lasts();
  }
  void lasts() noexcept { lasting_.fetch_add(1, std::memory_order_relaxed); }  // counter
  void ended() noexcept {
    not_before_.set(now_ns() + tuning::pause_after_lasting_call);
    lasting_.fetch_sub(1, std::memory_order_release);  // A
  }
  [[nodiscard]] bool any_lasts() const noexcept { return lasting_.load(std::memory_order_acquire) != 0; }  // A

 private:
  std::atomic<int> lasting_{0};
  hint<std::int64_t> not_before_;
};

}  // namespace ulexite::detail
