#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <string>

namespace ulexite::detail {

// How many workers a runtime has: `wanted`, or if that is 0 the environment variable ULEXITE_THREADS, or the processors
// that this process may use by affinity and by its control group's quota. From 1 to 1024; throws std::invalid_argument
// naming the value when it is outside.
std::size_t worker_limit(std::size_t wanted);

// The processors that this process may use, as above. At least 1. Quotas are read at each call.
std::size_t processors();

// Processors' worth of time that the control groups of a process grant, rounded up: the least that its group or one
// above it allows, of the groups that can be seen. From 1 to 1024, which also stands for no limit. `process` is the
// process's folder below /proc.
std::size_t quota_processors(const std::string& process);

}  // namespace ulexite::detail
