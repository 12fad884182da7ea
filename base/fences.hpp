#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// An asymmetric pair of fences. One side does a store, a light fence and a load; the other a store, a heavy fence and a
// load. At least one side sees the other's store, as if both fences were sequentially consistent. The light fence costs
// nothing. The heavy fence is for the rare side. It makes every running thread of the process pass a barrier (Linux's
// membarrier, private expedited). That takes microseconds. If the kernel refuses membarrier, both are ordinary fences.
// After Dice, Huang and Yang, "Asymmetric Dekker Synchronization" (2001).

extern bool fences_are_asymmetric;  // set before main, and then constant

void heavy_fence() noexcept;

}  // namespace ulexite::detail
