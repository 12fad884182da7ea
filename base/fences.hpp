#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// An asymmetric pair of fences: a store, a light fence and a load on one side, a store, a heavy fence and a load on the
// other, and at least one side sees the other's store, as if both fences were sequentially consistent. The light one
// costs nothing; the heavy one, for the side that is seldom taken, makes every running thread of the process pass a
// barrier (Linux's membarrier, private expedited), which takes microseconds. Where the kernel refuses that, both are
// ordinary fences. After Dice, Huang and Yang, "Asymmetric Dekker Synchronization" (2001).

extern const bool fences_are_asymmetric;

void heavy_fence() noexcept;

}  // namespace ulexite::detail
