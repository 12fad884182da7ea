#pragma once

#include <chrono>

namespace ulexite {
struct runtime_options;
}

namespace ulexite::detail {

class runtime_state;
class scheduler;

// What the options and the environment ask for.
std::chrono::milliseconds stuck_after(const runtime_options& options) noexcept;

// Reports the fiber or job of the worker if it has run for that long, and was not reported since the worker's last
// change. Called by the monitor, without any lock.
void look_at_stuck_worker(runtime_state& home, scheduler& worker) noexcept;

}  // namespace ulexite::detail
