#pragma once

#include <ulexite/base/standard.hpp>

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ulexite::detail {

#if defined(__x86_64__)

// The control words of the x87 and SSE units; calls do not preserve their flags. One word, because it is stored and
// loaded at each switch.
class floating_controls {
 public:
  // The controls of the running computation. Reads the x87's only if SSE's are not the `usual` ones, because a change
  // of the rounding (std::fesetround) changes both.
  static floating_controls current(floating_controls usual) noexcept {
    return usual.has_current_sse() ? usual : of_thread();
  }
  static floating_controls of_thread() noexcept { return floating_controls(sse_controls()); }

  void apply() const noexcept {
    const auto x87 = static_cast<std::uint16_t>(words_ >> 32);
    asm volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr(static_cast<std::uint32_t>(words_));
  }
  // As above, for a computation that has probably not changed the controls. To read SSE's takes 5 ns on AMD's
  // processors, and to load both takes less than one.
  void restore() const noexcept { apply(); }
  friend bool operator==(floating_controls, floating_controls) noexcept = default;

 private:
  explicit floating_controls(std::uint64_t sse) noexcept {
    std::uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    words_ = std::uint64_t{x87} << 32 | sse;
  }
  static constexpr std::uint32_t sse_flags = 0x3f;  // what exceptions have occurred

  static std::uint32_t sse_controls() noexcept { return _mm_getcsr() & ~sse_flags; }
  // Whether SSE's control word is the same; the flags are masked last, which saves an instruction.
  [[nodiscard]] bool has_current_sse() const noexcept {
    return ((_mm_getcsr() ^ static_cast<std::uint32_t>(words_)) & ~sse_flags) == 0;
  }

  std::uint64_t words_;
};

#elif defined(__aarch64__)

// The control register, which Boost's jump does not save.
class floating_controls {
 public:
  static floating_controls current(floating_controls) noexcept { return of_thread(); }
  static floating_controls of_thread() noexcept {
    floating_controls now;
    asm volatile("mrs %0, fpcr" : "=r"(now.word_));
    return now;
  }

  void apply() const noexcept { asm volatile("msr fpcr, %0" : : "r"(word_)); }
  void restore() const noexcept {
    if (!(of_thread() == *this)) apply();
  }
  friend bool operator==(floating_controls, floating_controls) noexcept = default;

 private:
  std::uint64_t word_ = 0;
};

#endif

}  // namespace ulexite::detail
