#pragma once

#include <stop_token>

namespace ulexite::detail {

// Requests a stop, and so runs callbacks of the user. A fiber may not wait in them. A std::stop_callback's destructor
// waits for a call under way, unless it runs on the thread that made the request. A fiber that waits would let other
// fibers run on this thread, and so break this rule. Returns false if a stop was requested before.
bool run_stop_callbacks(std::stop_source source) noexcept;

}  // namespace ulexite::detail
