#pragma once

#include <ulexite/fiber/stack.hpp>

#include <cstddef>

namespace ulexite::detail {

// Installs, once per process, the handlers that name a fiber in which the process ends. Throws std::system_error when
// the system refuses. Any thread.
//
// That of SIGSEGV and SIGBUS tells a fault in a stack's guard from any other: it writes one line
//   ulexite: stack overflow in fiber #7 'name' (stack of 262144 bytes, spawned at file.cpp:12): address 0x...
// to stderr and then lets the default action kill the process. Any other fault goes to the handler that was installed
// before. If that is the default action and a fiber ran, a like line says so first: "ulexite: SIGSEGV in fiber #7 ...".
//
// That of std::terminate writes "ulexite: std::terminate in fiber #7 ...", if a fiber called it, and calls the handler
// that was installed before.
void install_death_reports();

// Gives the calling thread, for its own life, a signal stack for that handler: a fault on a full stack cannot be
// handled on it. A thread that already has one keeps it. Where the system refuses, one line says so, and an overflow on
// this thread ends the process without a report. Created and destroyed by the same thread.
class signal_stack {
 public:
  signal_stack() noexcept;
  ~signal_stack();
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

 private:
  [[nodiscard]] bool make() noexcept;

  void* memory_ = nullptr;  // null: the thread had one, or has none
  std::size_t size_ = 0;    // of memory_, its guard page included
};

// The slow half of check_stack_canary.
[[noreturn, gnu::cold]] void report_broken_canary(const stack& stack) noexcept;
[[gnu::cold]] bool canary_is_broken(const stack& stack) noexcept;

// Ends the process, with a line like the handler's, when `stack` has a canary instead of a guard and it was
// overwritten: whatever lies below may be damaged. The pool checks each stack it is given; whoever knows the owner for
// a shorter time than that should check before. Any thread.
inline void check_stack_canary(const stack& stack) noexcept {
  if (stack.canary && canary_is_broken(stack)) report_broken_canary(stack);
}

}  // namespace ulexite::detail
