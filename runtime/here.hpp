#pragma once

#include <ulexite/runtime/agent.hpp>

namespace ulexite::detail {

class scheduler;

// Who runs on the calling thread. A compiler may keep the address of a thread_local over a switch, after which another
// thread runs the code; so nobody sees it but the functions of here.cpp, which are never inlined nor looked into.
struct whereabouts {
  detail::scheduler* scheduler = nullptr;  // null on a plain thread
  detail::agent* agent = nullptr;          // of what runs; null on a plain thread before first use
};

// The calling worker's scheduler, or null on any other thread. A fiber must not keep it over a switch.
scheduler* this_scheduler() noexcept;

// The calling thread's own record, for its worker to keep.
whereabouts& this_thread_whereabouts() noexcept;

}  // namespace ulexite::detail
