#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// A perturbation point. In a build with ULEXITE_CHAOS it sometimes pauses, yields or sleeps for some microseconds, so
// tests meet interleavings that are rare on a quiet machine. The environment variable ULEXITE_SEED is the seed of these
// choices. Other builds compile it away.
#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS
inline constexpr bool perturbed = true;
void perturb() noexcept;
// Switches the perturbation of the calling thread on or off. Returns whether it was on, as it is at first. In other
// builds it is off.
bool set_perturbed(bool on) noexcept;
#else
inline constexpr bool perturbed = false;
inline void perturb() noexcept {}
inline bool set_perturbed(bool) noexcept { return false; }
#endif

}  // namespace ulexite::detail
