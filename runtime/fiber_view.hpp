#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <cstdint>

namespace ulexite {

// What a collector, a debugger or a report sees of one fiber. Of the time of the visit.
struct fiber_view {
  // What it is at.
  enum class status : std::uint8_t {
    fresh,    // it has not begun
    ready,    // it could run
    running,  // it runs, or is being switched to or from
    waiting,
  };

  std::uint64_t id = 0;            // 0: it is just being spawned
  char name[32] = {};              // cut; empty: none, or it could not be read
  status state = status::running;  // what it is at
  const char* waits = nullptr;     // if it waits: in words, "to receive from channel"
  const void* object = nullptr;    // that it waits at, or null
  std::uint64_t holder = 0;        // if that is a mutex or the end of a fiber: the fiber that could end the wait
  const char* file = nullptr;      // of the spawn; null: unknown, and `code` may tell
  std::uint32_t line = 0;          // of the spawn
  const void* code = nullptr;      // the address of the call that spawned it, or null
  void* user_data = nullptr;       // this_fiber::user_data

  // What a collector scans: [sp, high) of its stack, its registers included. All null: it has none. sp null, the others
  // not: scan what the thread that stands between low and high stands on; if none stands there, the fiber was just being
  // switched, and all of [low, high) is to be scanned.
  const void* low = nullptr;     // the lowest byte of its stack
  const void* sp = nullptr;      // where it was left
  const void* high = nullptr;    // one past the highest byte
  const void* record = nullptr;  // its closure and result are in here
  std::size_t record_size = 0;   // bytes
};

}  // namespace ulexite
