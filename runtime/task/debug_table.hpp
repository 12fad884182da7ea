#pragma once

namespace ulexite::detail {

class task_pool;

// A table for debuggers, which find with it the fibers of a process or of a core file. The note .note.ulexite leads to
// it, also in a program without debug information: see tools/gdb/ulexite.py. These functions keep its list of live
// pools. Any thread.
void enter_in_debug_table(task_pool& pool) noexcept;
void remove_from_debug_table(task_pool& pool) noexcept;

}  // namespace ulexite::detail
