#pragma once

// The registrations of descriptors beside their owners. Internal: not for users.
//
// The kernel reports the readiness that a descriptor has at its registration. But libevent registers a descriptor once,
// even if it has two sources. So the second source gets no edge for an earlier readiness, if the first has had it. An
// owner registers once for a long time, and mostly alone. So it asks only whether a guest may have been there then.
//
// This does not help an owner that gets its number because the descriptor was closed while a guest waited. The kernel
// forgets a descriptor at its close, but libevent does not. So guests forbid such a close.
//
// State
//   word_  the number of guests, and above it the number of all that have ever begun. Written by each guest.
//
// Pairings: none. libevent's lock orders all: a guest begins before it registers, and ends after the removal. An owner
// reads the word before and after its own registration. If a guest was registered then, its begin is before the second
// read, and its end is not before the first. So the first read shows it, or the two reads differ.
//
// Checked by tests/model/guest_registrations_model.cpp.

#include <ulexite/base/standard.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class guest_registrations {
 public:
  // Called by a guest, before it registers.
  void begin() noexcept { word_.fetch_add(one_begun + one_present, std::memory_order_relaxed); }  // libevent's lock
  // Called by it, after it has removed its registration.
  void end() noexcept { word_.fetch_sub(one_present, std::memory_order_relaxed); }  // libevent's lock

  // Called before a registration. Returns the argument for was_alone.
  [[nodiscard]] std::uint64_t seen() const noexcept {
    return word_.load(std::memory_order_relaxed);  // libevent's lock
  }
  // Called after it. True: no guest was registered at that moment.
  [[nodiscard]] bool was_alone(std::uint64_t seen_before) const noexcept {
    return seen_before % one_begun == 0 && seen() == seen_before;
  }

 private:
  static constexpr std::uint64_t one_present = 1, one_begun = std::uint64_t{1} << 32;

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ulexite::detail
