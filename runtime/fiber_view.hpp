#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <cstdint>

namespace ulexite {

// One fiber as a collector, a debugger or a report sees it, at the time of the visit.
struct fiber_view {
  // The states of a fiber.
  enum class status : std::uint8_t {
    fresh,    // has not begun
    ready,    // could run
    running,  // runs, or is being switched to or from
    waiting,
  };

  std::uint64_t id = 0;            // 0: it is just being spawned
  char name[32] = {};              // cut; empty: none, or it could not be read
  status state = status::running;  // its state
  const char* waits = nullptr;     // if it waits: the reason in words, "to receive from channel"
  const void* object = nullptr;    // the object at which it waits, or null
  std::uint64_t holder = 0;        // if it waits for a mutex or the end of a fiber: the fiber that could end the
                                   // wait
  const char* file = nullptr;      // of the spawn; null: unknown, see `code`
  std::uint32_t line = 0;          // of the spawn
  const void* code = nullptr;      // the address of the call that spawned it, or null
  void* user_data = nullptr;       // this_fiber::user_data

  // The part of its stack that a collector must scan: [sp, high), with its registers. All null: the fiber has no stack.
  // Only sp null: the fiber runs. Then scan from the stack pointer of the thread that is between low and high. If no
  // thread is there, the fiber is being switched: scan all of [low, high).
  const void* low = nullptr;     // the lowest byte of its stack
  const void* sp = nullptr;      // its saved stack pointer
  const void* high = nullptr;    // one past the highest byte
  const void* record = nullptr;  // the block with its closure and result
  std::size_t record_size = 0;   // bytes
};

}  // namespace ulexite
