#include <ulexite/fiber/jump.hpp>
#include <ulexite/fiber/unwind.hpp>

#include <cstdint>

#include <unwind.h>

// The canonical frame address is the stack pointer after the jump of the suspended computation has returned.

#if defined(__x86_64__)
#if ULEXITE_OWN_JUMP
// jump.hpp: the address, rbp, then the red zone. The jump clobbers all other registers, so no frame above reads them.
#define ULEXITE_WHERE_IT_WAS_LEFT \
  ".cfi_def_cfa rbx, 144\n"       \
  ".cfi_offset rip, -144\n"       \
  ".cfi_offset rbp, -136\n"       \
  ".cfi_undefined rbx\n"
#else
// Boost 1.81: 0x00 mxcsr and x87, 0x10 r12, 0x18 r13, 0x20 r14, 0x28 r15, 0x30 rbx, 0x38 rbp, 0x40 the address.
#define ULEXITE_WHERE_IT_WAS_LEFT \
  ".cfi_def_cfa rbx, 0x48\n"      \
  ".cfi_offset rip, -0x08\n"      \
  ".cfi_offset rbp, -0x10\n"      \
  ".cfi_offset rbx, -0x18\n"      \
  ".cfi_offset r15, -0x20\n"      \
  ".cfi_offset r14, -0x28\n"      \
  ".cfi_offset r13, -0x30\n"      \
  ".cfi_offset r12, -0x38\n"
#endif
asm(R"(
.pushsection .text
.globl ulexite_call_below
.hidden ulexite_call_below
.type ulexite_call_below, @function
ulexite_call_below:
  .cfi_startproc
  pushq %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset rbx, -16
  movq %rdi, %rbx
  movq %rdx, %rdi
  .cfi_remember_state
)" ULEXITE_WHERE_IT_WAS_LEFT R"(
  call *%rsi
  .cfi_restore_state
  popq %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
.size ulexite_call_below, .-ulexite_call_below
.popsection
)");
#elif defined(__aarch64__)
// Boost 1.81: d8 to d15, then x19 to x28 from 0x40, x29 at 0x90, x30 at 0x98, the address at 0xa0.
asm(R"(
.pushsection .text
.globl ulexite_call_below
.hidden ulexite_call_below
.type ulexite_call_below, @function
ulexite_call_below:
  .cfi_startproc
  stp x19, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x19, -16
  .cfi_offset x30, -8
  mov x19, x0
  mov x0, x2
  .cfi_remember_state
  .cfi_def_cfa x19, 0xb0
  .cfi_offset x30, -0x10
  .cfi_offset x29, -0x20
  .cfi_offset x19, -0x70
  .cfi_offset x20, -0x68
  .cfi_offset x21, -0x60
  .cfi_offset x22, -0x58
  .cfi_offset x23, -0x50
  .cfi_offset x24, -0x48
  .cfi_offset x25, -0x40
  .cfi_offset x26, -0x38
  .cfi_offset x27, -0x30
  .cfi_offset x28, -0x28
  blr x1
  .cfi_restore_state
  ldp x19, x30, [sp], #16
  .cfi_restore x19
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
.size ulexite_call_below, .-ulexite_call_below
.popsection
)");
#endif

namespace ulexite::detail {
namespace {

struct walk {
  std::span<void*> addresses;
  std::size_t count = 0;
  unsigned own_frames = 2;  // walk_from_here, and ulexite_call_below
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* data) {
  walk& under_way = *static_cast<walk*>(data);
  if (under_way.own_frames > 0) {
    --under_way.own_frames;
    return _URC_NO_REASON;
  }
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || under_way.count == under_way.addresses.size()) return _URC_END_OF_STACK;
  under_way.addresses[under_way.count++] = reinterpret_cast<void*>(address);
  return _URC_NO_REASON;
}

[[gnu::noinline]] void walk_from_here(void* data) {
  _Unwind_Backtrace(visit_frame, data);
  asm volatile("" ::: "memory");  // no tail call, which would be a frame less
}

}  // namespace

std::size_t unwind(void* frame, std::span<void*> addresses) noexcept {
  walk under_way{addresses};
  ulexite_call_below(frame, walk_from_here, &under_way);
  return under_way.count;
}

}  // namespace ulexite::detail
