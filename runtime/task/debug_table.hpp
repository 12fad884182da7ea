#pragma once

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class task_pool;

// The last events of one worker, see recorder.hpp, where a debugger finds them.
struct recorder_ring {
  std::atomic<std::uint64_t>* words = nullptr;  // null: only times are recorded
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t> next{0};  // State: see recorder.hpp
  std::uint64_t worker = 0;
  std::uint64_t scale = 0;  // 2^32 times the nanoseconds of a tick
};

// A table for debuggers, which find with it the fibers of a process or of a core file. The note .note.ulexite leads to
// it, also in a program without debug information: see tools/gdb/ulexite_layout.py. These functions keep its lists of
// live pools and of recorders. Any thread.
void enter_in_debug_table(task_pool& pool) noexcept;
void remove_from_debug_table(task_pool& pool) noexcept;
void enter_in_debug_table(const recorder_ring& ring) noexcept;
void remove_from_debug_table(const recorder_ring& ring) noexcept;

}  // namespace ulexite::detail
