#pragma once

// The bare jump from one stack to another, which keeps the registers that the C++ ABI preserves. There are two kinds:
//
//   x86-64      a dozen instructions of our own, inlined. There is no call that the processor's return predictor
//               expects to return. The floating-point control words are only read (floating_controls.hpp), not saved
//               and loaded. A yield takes half the time.
//   elsewhere   Boost.Context's (Oliver Kowalke, 2009). ULEXITE_BOOST_SWITCH uses it on x86-64 too, for comparison.

#include <ulexite/base/standard.hpp>

#if defined(__x86_64__) && !(defined(ULEXITE_BOOST_SWITCH) && ULEXITE_BOOST_SWITCH)
#define ULEXITE_OWN_JUMP 1
#else
#define ULEXITE_OWN_JUMP 0
#include <boost/context/detail/fcontext.hpp>
#endif

#include <cstddef>

// The first frame of every started computation; in context.cpp. Calls ulexite_context_main with the frame and the data
// of the computation that left.
extern "C" void ulexite_context_entry();

namespace ulexite::detail {

// The computation that left: the address of its registers on its stack, and the data that it passed.
struct arrival {
  void* frame;
  void* data;
};

// Leaves this stack for the stack with frame `target`. Returns when a thread jumps to this stack's frame.
#if ULEXITE_OWN_JUMP

// A frame on the stack is the address at which to continue, then rbp. The jump destroys every other register, so it
// names all that the compiler may use with its flags (tests/jump).
[[gnu::always_inline]] inline arrival jump(void* target, void* data) noexcept {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rcx\n\t"
      "pushq %%rcx\n\t"
      "xchgq %%rsp, %%rdi\n\t"
      "popq %%rcx\n\t"
      "jmp *%%rcx\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+D"(target), "+S"(data)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
#ifdef __APX_F__
        "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
#endif
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc", "memory");
  return {target, data};  // of the computation that jumped here
}

// Makes the frame of a computation that starts on the stack with the end `top`.
inline void* make_frame(char* top, std::size_t) noexcept {
  void** const frame = reinterpret_cast<void**>(top) - 2;
  frame[0] = reinterpret_cast<void*>(ulexite_context_entry);
  frame[1] = nullptr;
  return frame;
}

#else

[[gnu::always_inline]] inline arrival jump(void* target, void* data) noexcept {
  const auto came_from = boost::context::detail::jump_fcontext(target, data);
  return {came_from.fctx, came_from.data};
}

inline void* make_frame(char* top, std::size_t size) noexcept {
  using entry = void (*)(boost::context::detail::transfer_t);
  return boost::context::detail::make_fcontext(top, size, reinterpret_cast<entry>(ulexite_context_entry));
}

#endif

}  // namespace ulexite::detail
