#pragma once

// What a wait leaves in its fiber's record before the switch, for those who look into a running program: of what kind
// it is, the object it is for, and since when. It costs the path a few stores and no byte of memory.

#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

enum class cancellable : bool { no, yes };

enum class wait_kind : std::uint8_t {
  none,
  // The object is what the caller waits at.
  receive,
  send,
  select,  // of the first case
  mutex,   // the word that has its holder's agent, or 0, and in the lowest bit something else
  shared_mutex,
  condition_variable,
  semaphore,
  event,
  auto_reset_event,
  broadcast,  // or a watch
  latch,
  barrier,
  wait_group,
  context,  // its end: that its fibers have ended
  future,
  park,  // ulx_park: the handle
  join,  // the fiber whose end is waited for, a task
  fork,  // a branch of a parallel call
  // What comes from outside of the runtime's fibers may end these.
  sleep,     // no object
  blocking,  // a call that runs on a thread of its own
  read,      // the descriptor's number instead of an object
  write,
  descriptors,
};

// In words, as what follows "waits": "to receive from channel".
constexpr const char* to_string(wait_kind kind) noexcept {
  switch (kind) {
    case wait_kind::none: return "for something";
    case wait_kind::receive: return "to receive from channel";
    case wait_kind::send: return "to send to channel";
    case wait_kind::select: return "in a select whose first case is at";
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

// As a label in metrics.
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

// May something end such a wait that is no fiber of the runtime, and no holder of what the wait is for?
constexpr bool waits_for_outside(wait_kind kind) noexcept { return kind >= wait_kind::sleep; }

// What the waiter tells of its wait, in two registers.
struct wait_mode {
  static constexpr std::uint8_t cancellable_bit = 1;
  static constexpr std::uint8_t timed_bit = 2;  // a timer of its own ends it at the latest

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
