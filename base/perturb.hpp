#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// A perturbation point: in a build with ULEXITE_CHAOS, now and then a pause, a yield or a nap of some microseconds, so
// that tests meet the interleavings that a quiet machine never shows. The schedule follows from the seed in the
// environment variable ULEXITE_SEED. Compiled away otherwise.
#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS
inline constexpr bool perturbed = true;
void perturb() noexcept;
#else
inline constexpr bool perturbed = false;
inline void perturb() noexcept {}
#endif

}  // namespace ulexite::detail
