#pragma once

namespace ulexite::detail {

class task_pool;

// A debugger finds the fibers of a process, or of its core file, by a table that the note .note.ulexite leads to, also in a program without
// debug information: see tools/gdb/ulexite.py. These keep its list of live pools. Any thread.
void enter_in_debug_table(task_pool& pool) noexcept;
void remove_from_debug_table(task_pool& pool) noexcept;

}  // namespace ulexite::detail
