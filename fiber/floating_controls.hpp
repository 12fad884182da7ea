#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ulexite::detail {

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

  void apply() const noexcept {
    const auto x87 = static_cast<std::uint16_t>(words_ >> 32);
    asm volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr(static_cast<std::uint32_t>(words_));
  }
  // The same, where the running computation may have left others.
  void restore() const noexcept {
    if (!(current(*this) == *this)) [[unlikely]]
      apply();
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
  void apply() const noexcept {}
  void restore() const noexcept {}
  friend bool operator==(floating_controls, floating_controls) noexcept { return true; }
};

#endif

}  // namespace ulexite::detail
