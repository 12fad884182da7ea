#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// A perturbation point. In a build with ULEXITE_CHAOS it sometimes pauses, yields or sleeps for some microseconds, so
// tests meet interleavings that are rare on a quiet machine. The environment variable ULEXITE_SEED is the seed of these
// choices. Other builds compile it away.
#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS
inline constexpr bool perturbed = true;
void perturb() noexcept;
#else
inline constexpr bool perturbed = false;
inline void perturb() noexcept {}
#endif

}  // namespace ulexite::detail
