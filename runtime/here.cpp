#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/here.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#define ULEXITE_OPAQUE [[gnu::noinline, gnu::noipa]]
#else
#define ULEXITE_OPAQUE [[gnu::noinline]]
#endif

namespace ulexite::detail {
namespace {

constinit thread_local whereabouts here;

[[gnu::cold, gnu::noinline]] agent& agent_without_fiber() noexcept {
  if (this_scheduler()) panic("a job waits for something: only fibers and plain threads may");
  thread_local thread_agent plain;  // a plain thread stays on itself: no fiber comes here
  this_thread_whereabouts().agent = &plain;
  return plain;
}

}  // namespace

ULEXITE_OPAQUE whereabouts& this_thread_whereabouts() noexcept {
  whereabouts* address = &here;
  asm volatile("" : "+r"(address));
  return *address;
}

ULEXITE_OPAQUE scheduler* this_scheduler() noexcept {
  whereabouts* address = &here;
  asm volatile("" : "+r"(address));
  return address->scheduler;
}

ULEXITE_OPAQUE agent& this_agent() noexcept {
  whereabouts* address = &here;
  asm volatile("" : "+r"(address));
  return address->agent ? *address->agent : agent_without_fiber();
}

}  // namespace ulexite::detail
