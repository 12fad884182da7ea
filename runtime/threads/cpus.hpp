#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <string>

namespace ulexite::detail {

// The most workers of a runtime, and what the processors of a larger machine count as.
inline constexpr std::size_t most_processors = 1024;

// The number of workers of a runtime. It is `wanted`, or if that is 0 the environment variable ULEXITE_THREADS. Without
// this variable it is the number of processors that affinity and the control group's quota allow. From 1 to 1024;
// throws std::invalid_argument that names a value outside.
std::size_t worker_limit(std::size_t wanted);

// Whether neither `wanted` nor the environment gives the number, so that it follows the quota.
bool follows_quota(std::size_t wanted) noexcept;

// runtime_options::max_threads: at most 1024; throws as above. 0 is allowed.
std::size_t most_workers(std::size_t wanted);

// The processors that this process may use, as above. At least 1. Quotas are read at each call.
std::size_t processors();

// The processor time, in processors rounded up, that the control groups of a process allow. This is the lowest limit of
// its group and the visible ancestors. From 1 to 1024; 1024 also means no limit. `process` is the process's folder
// below /proc.
std::size_t quota_processors(const std::string& process);

}  // namespace ulexite::detail
