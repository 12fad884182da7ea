#pragma once

// A wait's description in its fiber's record, for reports about a running program: its kind, its object, and its start.
// It is written before the switch. It costs a few stores and no memory.

#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

enum class cancellable : bool { no, yes };

enum class wait_kind : std::uint8_t {
  none,
  // The object is the one at which the caller waits.
  receive,
  send,
  select,  // one of its cases
  mutex,   // the word with its holder's agent, or 0; its lowest bit has another use
  shared_mutex,
  condition_variable,
  semaphore,
  event,
  auto_reset_event,
  broadcast,  // or a watch
  latch,
  barrier,
  wait_group,
  task_group,  // its children
  context,     // its end: the ends of its fibers
  future,
  park,  // ulx_park: the handle
  join,  // the task of the joined fiber
  fork,  // a branch of a parallel call
  // Events from outside the runtime's fibers may end the waits below.
  sleep,     // no object
  blocking,  // a call that runs on a separate thread
  read,      // the descriptor's number instead of an object
  write,
  descriptors,
};

// The kind in words, as the text after "waits": "to receive from channel".
constexpr const char* to_string(wait_kind kind) noexcept {
  switch (kind) {
    case wait_kind::none: return "for something";
    case wait_kind::receive: return "to receive from channel";
    case wait_kind::send: return "to send to channel";
    case wait_kind::select: return "in a select, one of whose cases is at";
    case wait_kind::mutex: return "for mutex";
    case wait_kind::shared_mutex: return "for shared_mutex";
    case wait_kind::condition_variable: return "for condition_variable";
    case wait_kind::semaphore: return "for semaphore";
    case wait_kind::event: return "for event";
    case wait_kind::auto_reset_event: return "for auto_reset_event";
    case wait_kind::broadcast: return "to receive from broadcast";
    case wait_kind::latch: return "for latch";
    case wait_kind::barrier: return "at barrier";
    case wait_kind::wait_group: return "for wait_group";
    case wait_kind::task_group: return "for the fibers of task_group";
    case wait_kind::context: return "for the fibers of context";
    case wait_kind::future: return "for future";
    case wait_kind::park: return "to be unparked at";
    case wait_kind::join: return "for the end of fiber";
    case wait_kind::fork: return "for a branch of a parallel call";
    case wait_kind::sleep: return "in a sleep";
    case wait_kind::blocking: return "for a blocking call";
    case wait_kind::read: return "to read descriptor";
    case wait_kind::write: return "to write descriptor";
    case wait_kind::descriptors: return "for one of several descriptors";
  }
  return "for something unknown";
}

inline constexpr std::size_t wait_kinds = static_cast<std::size_t>(wait_kind::descriptors) + 1;

// The kind as a label in metrics.
constexpr const char* name_of(wait_kind kind) noexcept {
  constexpr const char* names[wait_kinds] = {"none",
                                             "receive",
                                             "send",
                                             "select",
                                             "mutex",
                                             "shared_mutex",
                                             "condition_variable",
                                             "semaphore",
                                             "event",
                                             "auto_reset_event",
                                             "broadcast",
                                             "latch",
                                             "barrier",
                                             "wait_group",
                                             "task_group",
                                             "context",
                                             "future",
                                             "park",
                                             "join",
                                             "fork",
                                             "sleep",
                                             "blocking",
                                             "read",
                                             "write",
                                             "descriptors"};
  const auto number = static_cast<std::size_t>(kind);
  return number < wait_kinds ? names[number] : "unknown";
}

// Whether such a wait may be ended by something other than a fiber of the runtime or a holder of its object.
constexpr bool waits_for_outside(wait_kind kind) noexcept { return kind >= wait_kind::sleep; }

// The waiter's description of its wait, in two registers.
struct wait_mode {
  static constexpr std::uint8_t cancellable_bit = 1;
  static constexpr std::uint8_t timed_bit = 2;  // the wait has its own time limit

  const void* object;
  std::uint8_t bits;  // the kind above those two

  [[nodiscard]] constexpr bool is_cancellable() const noexcept { return (bits & cancellable_bit) != 0; }
  [[nodiscard]] constexpr wait_mode cancellable_if(bool yes) const noexcept {
    return {object, static_cast<std::uint8_t>(yes ? bits : bits & ~cancellable_bit)};
  }
  [[nodiscard]] constexpr wait_mode with_timer() const noexcept {
    return {object, static_cast<std::uint8_t>(bits | timed_bit)};
  }
  static constexpr wait_kind kind_of(std::uint8_t bits) noexcept { return static_cast<wait_kind>(bits >> 2); }
};

constexpr wait_mode waiting_for(wait_kind kind, const void* object, cancellable cancellable) noexcept {
  return {object, static_cast<std::uint8_t>(static_cast<unsigned>(kind) << 2 |
                                            (cancellable == cancellable::yes ? wait_mode::cancellable_bit : 0U))};
}

}  // namespace ulexite::detail
