#pragma once

// The bare jump from one stack to another, with what the C++ ABI wants kept. Two ways:
//
//   x86-64      a dozen instructions of our own, inlined, so that the compiler saves what is alive and no more, and the
//               jump's target is predicted by where it stands. The floating-point control words, which Boost saves and
//               loads at each jump, are looked at once and changed only where they differ: two thirds of Boost's time.
//   elsewhere   Boost.Context's (Oliver Kowalke, 2009). ULEXITE_BOOST_SWITCH takes it on x86-64 too, for comparison.

#if defined(__x86_64__) && !(defined(ULEXITE_BOOST_SWITCH) && ULEXITE_BOOST_SWITCH)
#define ULEXITE_OWN_JUMP 1
#else
#define ULEXITE_OWN_JUMP 0
#include <boost/context/detail/fcontext.hpp>
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cstddef>
#include <cstdint>

// The first frame of every started computation; in context.cpp. Calls ulexite_context_main(frame, data) of who left.
extern "C" void ulexite_context_entry();

namespace ulexite::detail {

// The one that left: where its registers lie on its stack, and what it handed over.
struct arrival {
  void* frame;
  void* data;
};

#if defined(__x86_64__)

// The control words of the x87 and SSE units; their flags are nobody's across a call. One word, for it is stored and
// loaded at each switch.
class floating_controls {
 public:
  // Those of the running computation. The x87's are looked at only if SSE's are not the `usual` ones, for who changes
  // the rounding (std::fesetround) changes both.
  static floating_controls current(floating_controls usual) noexcept {
    const std::uint64_t sse = sse_controls();
    return sse == static_cast<std::uint32_t>(usual.words_) ? usual : floating_controls(sse);
  }
  static floating_controls of_thread() noexcept { return floating_controls(sse_controls()); }

  void load() const noexcept {
    const auto x87 = static_cast<std::uint16_t>(words_ >> 32);
    asm volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr(static_cast<std::uint32_t>(words_));
  }
  friend bool operator==(floating_controls, floating_controls) noexcept = default;

 private:
  explicit floating_controls(std::uint64_t sse) noexcept {
    std::uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    words_ = std::uint64_t{x87} << 32 | sse;
  }
  static std::uint32_t sse_controls() noexcept { return _mm_getcsr() & ~0x3fu; }

  std::uint64_t words_;
};

#else

// Boost's jump takes them along.
struct floating_controls {
  static floating_controls current(floating_controls) noexcept { return {}; }
  static floating_controls of_thread() noexcept { return {}; }
  void load() const noexcept {}
  friend bool operator==(floating_controls, floating_controls) noexcept { return true; }
};

#endif

// Leaves this stack for the one whose frame is `target`; returns when somebody jumps to this one's frame.
#if ULEXITE_OWN_JUMP

// A frame is the address to go on at, then rbp, on the stack.
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
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "cc", "memory");
  return {target, data};  // of the one that jumped here
}

// The frame of a computation that starts on the stack that ends at `top`.
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
