#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite::detail {

// How many workers a runtime has: `wanted`, or if that is 0 the environment variable ULEXITE_THREADS, or the processors
// that this process may use by affinity and by its control group's quota. From 1 to 1024; throws std::invalid_argument
// naming the value when it is outside.
std::size_t worker_limit(std::size_t wanted);

// The processors that this process may use, as above. At least 1.
std::size_t processors();

}  // namespace ulexite::detail
