#include <ulexite/fiber/switch.hpp>

#include <cerrno>

#include <cxxabi.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ulexite::detail {

// jump_fcontext loads the target's MXCSR, and where that differs from the current one in no more than the sticky
// exception flags, the load costs 55 ns on some processors: after any inexact operation, on every switch. So the flags
// are all set from the start, which every context made on this thread inherits, and nothing can differ. (The flags say
// nothing across a suspension anyway. A fiber that clears them pays for it until they are set again.)
switch_thread::switch_thread() noexcept
    : exceptions(reinterpret_cast<exception_globals*>(abi::__cxa_get_globals())), error(&errno) {
#if defined(__x86_64__)
  constexpr unsigned int sticky_flags = 0x3f;
  floating = _mm_getcsr() | sticky_flags;
  _mm_setcsr(floating);
#endif
}

}  // namespace ulexite::detail

extern "C" {

const char ULEXITE_BUILT_AS = 0;

[[noreturn]] void ulexite_context_main(boost::context::detail::transfer_t arrival) noexcept {
  using namespace ulexite::detail;
  const auto entry = static_cast<const passage*>(arrival.data)->entry;
  switch_thread& thread = arrive(arrival, nullptr);
#if defined(__x86_64__)
  _mm_setcsr(thread.floating);  // not the rounding mode of whoever happened to start it
#endif
  entry(thread);
  __builtin_trap();
}
}

// ulexite_context_entry, the outermost frame of every fiber: its return address is declared undefined, which is where
// an unwinder stops. make_fcontext's own frame has no such mark in Boost 1.81, and unwinders ran off its end.

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
