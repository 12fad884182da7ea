#include <ulexite/fiber/switch.hpp>

#include <cerrno>

#include <cxxabi.h>

namespace ulexite::detail {

switch_thread::switch_thread() noexcept
    : exceptions(reinterpret_cast<exception_globals*>(abi::__cxa_get_globals())),
      error(&errno),
      floating(floating_controls::of_thread()) {}

}  // namespace ulexite::detail

extern "C" {

const char ULEXITE_BUILT_AS = 0;

// A new computation has the thread's floating-point controls, not those of the computation that started it.
[[noreturn, gnu::used]] void ulexite_context_main(void* frame, void* data) noexcept {
  using namespace ulexite::detail;
  const ulexite::detail::transfer& transfer = *static_cast<const ulexite::detail::transfer*>(data);
  const auto entry = transfer.entry;
  switch_thread& thread = arrive({frame, data}, transfer.thread->floating, nullptr);
  entry(thread);
  __builtin_trap();
}
}

// ulexite_context_entry is the outermost frame of every fiber. Its return address is declared undefined, so unwinders
// stop there. make_fcontext's own frame has no such mark in Boost 1.81, and unwinders ran past its end.

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl ulexite_context_entry
.hidden ulexite_context_entry
.type ulexite_context_entry, @function
ulexite_context_entry:
  .cfi_startproc
  .cfi_undefined rip
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call ulexite_context_main
  ud2
  .cfi_endproc
.size ulexite_context_entry, .-ulexite_context_entry
.popsection
)");
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.globl ulexite_context_entry
.hidden ulexite_context_entry
.type ulexite_context_entry, @function
ulexite_context_entry:
  .cfi_startproc
  .cfi_undefined x30
  bl ulexite_context_main
  brk #1
  .cfi_endproc
.size ulexite_context_entry, .-ulexite_context_entry
.popsection
)");
#else
#error "ulexite runs on x86-64 and aarch64"
#endif
