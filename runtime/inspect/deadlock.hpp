#pragma once

namespace ulexite::detail {

class runtime_state;

// Nothing has happened for a while: finds out whether that is for ever, and does what runtime_options::on_deadlock
// says. The monitor, without any lock.
void look_for_deadlock(runtime_state& home);

}  // namespace ulexite::detail
