#pragma once

#include <chrono>
#include <cstdint>

namespace ulexite {
struct runtime_options;
}

namespace ulexite::detail {

class scheduler;

// After this time a worker is reported as stuck, by the options or the environment; 0: never. Throws
// std::invalid_argument for a negative time.
std::chrono::milliseconds stuck_after(const runtime_options& options);

// Reports the fiber or job that has run on the worker for that time. Called by the monitor, without any lock.
void report_stuck_worker(scheduler& worker, std::int64_t nanoseconds) noexcept;

}  // namespace ulexite::detail
