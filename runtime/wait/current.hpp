#pragma once

#include <ulexite/runtime/wait/agent.hpp>

#include <cstdint>

namespace ulexite::detail {

class fork_queue;
class runtime_state;
class scheduler;

// The agent and worker of the calling thread. A compiler may keep the address of a thread_local over a switch, after
// which another thread runs the code. So only the functions of current.cpp see it. They are never inlined nor analysed.
struct current_execution {
  detail::scheduler* scheduler = nullptr;  // null on a plain thread
  detail::agent* agent = nullptr;          // the running agent; null on a plain thread before first use
  fork_queue* forks = nullptr;             // of the worker
};

// The runtime of the calling thread, which is a worker or a thread of the blocking pool; null on any other thread.
const runtime_state* runtime_of_thread() noexcept;
// Called before the thread does anything else.
void set_runtime_of_thread(const runtime_state& rt) noexcept;

// The runtime for spawns of the calling plain thread, or null.
runtime_state* spawn_runtime_of_thread() noexcept;
void set_spawn_runtime_of_thread(runtime_state* rt) noexcept;

// The calling worker's scheduler, or null on any other thread. A fiber must not keep it over a switch.
scheduler* this_scheduler() noexcept;

// The calling thread's record, which its worker keeps.
current_execution& this_thread_execution() noexcept;

#if defined(__x86_64__) && !defined(__ILP32__)
extern constinit thread_local current_execution own_execution asm("ulexite_current_execution");

// As above without a call, for steps of a few nanoseconds; a compiler cannot analyse it either. Do not keep the result
// over a possible switch.
[[gnu::always_inline]] inline current_execution& inlined_execution() noexcept {
  current_execution* address;
  asm volatile("movq ulexite_current_execution@gottpoff(%%rip), %0\n\taddq %%fs:0, %0" : "=r"(address) : : "cc");
  return *address;
}
#else
inline current_execution& inlined_execution() noexcept { return this_thread_execution(); }
#endif

// The agent of the calling fiber or thread.
agent& this_agent() noexcept;

// The calling agent and its worker, fetched with one call.
struct caller {
  detail::agent* agent;
  scheduler* worker;  // the caller's, until the next switch; null on a plain thread
};
caller this_caller() noexcept;

// this_caller() without a call.
[[gnu::always_inline]] inline caller inlined_caller() noexcept {
  const current_execution& here = inlined_execution();
  return {here.agent ? here.agent : &this_agent(), here.scheduler};
}

// A number below `bound`, which is above 0. Any thread.
std::uint32_t random_below(std::uint32_t bound) noexcept;
// Returns a fraction f of 2^32. The upper half of bound * f is a random number below `bound`; the lower half can serve
// for another number.
std::uint32_t random_fraction(std::uint32_t bound) noexcept;

}  // namespace ulexite::detail
