#pragma once

namespace ulexite::detail {

class runtime_state;

// Called when nothing has happened for a while. Finds out whether the fibers wait for ever, and then acts on
// runtime_options::on_deadlock. Returns whether it has reported something. Called by the monitor, with no lock held.
bool detect_deadlock(runtime_state& rt);

}  // namespace ulexite::detail
