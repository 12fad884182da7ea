#pragma once

#include <ulexite/runtime/agent.hpp>

namespace ulexite::detail {

class core;
class scheduler;

// Who runs on the calling thread. A compiler may keep the address of a thread_local over a switch, after which another
// thread runs the code; so nobody sees it but the functions of here.cpp, which are never inlined nor looked into.
struct whereabouts {
  detail::scheduler* scheduler = nullptr;  // null on a plain thread
  detail::agent* agent = nullptr;          // of what runs; null on a plain thread before first use
};

// The runtime that the calling thread belongs to, as a worker or as one that may block; null on any other thread.
const core* runtime_of_thread() noexcept;
// Before the thread does anything else.
void set_runtime_of_thread(const core& home) noexcept;

// The calling worker's scheduler, or null on any other thread. A fiber must not keep it over a switch.
scheduler* this_scheduler() noexcept;

// The calling thread's own record, for its worker to keep.
whereabouts& this_thread_whereabouts() noexcept;

#if defined(__x86_64__) && !defined(__ILP32__)
extern constinit thread_local whereabouts own_whereabouts asm("ulexite_whereabouts");

// The same without a call, for what is done every few nanoseconds: a compiler cannot look into it either. Not to be
// kept over anything that may switch.
[[gnu::always_inline]] inline whereabouts& inlined_whereabouts() noexcept {
  whereabouts* address;
  asm volatile("movq ulexite_whereabouts@gottpoff(%%rip), %0\n\taddq %%fs:0, %0" : "=r"(address) : : "cc");
  return *address;
}
#else
inline whereabouts& inlined_whereabouts() noexcept { return this_thread_whereabouts(); }
#endif

// this_caller() in that manner.
[[gnu::always_inline]] inline caller inlined_caller() noexcept {
  const auto [scheduler, agent] = inlined_whereabouts();
  return {agent ? agent : &this_agent(), scheduler};
}

}  // namespace ulexite::detail
