#pragma once

#include <ulexite/base/standard.hpp>

#include <bit>
#include <compare>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace ulexite::detail {

// The address of the instruction at which this is inlined.
[[gnu::always_inline]] inline const void* code_address() noexcept {
  const void* address;
#if defined(__x86_64__)
  asm volatile("leaq 0f(%%rip), %0\n0:" : "=r"(address));
#else
  asm volatile("adr %0, ." : "=r"(address));
#endif
  return address;
}

// The place of a fiber's spawn, in one word. It is a place in the source, or an address in the calling code. Functions
// with any number of arguments need the address, because they cannot have a default argument. Any thread may copy it at
// any time.
class spawn_place {
 public:
  constexpr spawn_place() noexcept = default;
  spawn_place(std::source_location where) noexcept : bits_(std::bit_cast<std::uintptr_t>(where)) {}
  explicit spawn_place(const void* code) noexcept : bits_(reinterpret_cast<std::uintptr_t>(code) << 1 | 1) {}

  [[nodiscard]] bool known() const noexcept { return bits_ != 0; }
  // Whether it is a place in the source and not an address.
  [[nodiscard]] bool in_source() const noexcept { return (bits_ & 1) == 0; }
  [[nodiscard]] std::source_location source() const noexcept { return std::bit_cast<std::source_location>(bits_); }
  [[nodiscard]] const void* code() const noexcept { return reinterpret_cast<const void*>(bits_ >> 1); }

  // The whole value as a trace stores it. It is below 2^49, because an address has up to 48 bits.
  [[nodiscard]] std::uintptr_t bits() const noexcept { return bits_; }
  static spawn_place of_bits(std::uintptr_t bits) noexcept {
    spawn_place made;
    made.bits_ = bits;
    return made;
  }

  friend bool operator==(spawn_place, spawn_place) noexcept = default;
  friend auto operator<=>(spawn_place, spawn_place) noexcept = default;

 private:
  static_assert(sizeof(std::source_location) == sizeof(std::uintptr_t) &&
                std::is_trivially_copyable_v<std::source_location>);

  std::uintptr_t bits_ = 0;  // a source_location is an aligned pointer, an address in user space has a spare bit
};

}  // namespace ulexite::detail
