#pragma once

#include <ulexite/fiber/stack.hpp>

#include <cstddef>

namespace ulexite::detail {

// Installs the handlers that name the fiber in which the process dies. Once per process. Throws std::system_error if
// the system refuses. Any thread.
//
// The handler of SIGSEGV and SIGBUS detects a fault in a stack's guard. It writes one line
//   ulexite: stack overflow in fiber #7 'name' (stack of 262144 bytes, spawned at file.cpp:12): address 0x...
// to stderr and then lets the default action kill the process. Any other fault goes to the handler that was installed
// before. If that is the default action and a fiber ran, it first writes a similar line:
// "ulexite: SIGSEGV in fiber #7 ...".
//
// The handler of std::terminate writes "ulexite: std::terminate in fiber #7 ...", if a fiber called it, and calls the
// handler that was installed before.
//
// Both also name the fiber for which the thread makes a call on its own stack: "..., in on_thread_stack".
void install_death_reports();

// For these reports: from now on the calling thread makes a call for the fiber on this stack, for none if it is null.
void set_call_for(const stack* caller) noexcept;

// Gives the calling thread a signal stack while the object exists, because a fault on a full stack cannot be handled
// there. A thread that already has a signal stack keeps it. If the system refuses, it prints one line, and an overflow
// on this thread ends the process without a report. One thread must create and destroy it.
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

// Ends the process, with a line like the handler's, if `stack` has an overwritten canary, because memory below may be
// damaged. The pool checks each returned stack. A caller that knows the owner only earlier should check before. Any
// thread.
inline void check_stack_canary(const stack& stack) noexcept {
  if (stack.canary && canary_is_broken(stack)) report_broken_canary(stack);
}

}  // namespace ulexite::detail
