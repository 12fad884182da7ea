#include <ulexite/runtime/wait/wait_kind.hpp>

namespace ulexite::detail {

const char* to_string(wait_kind kind) noexcept {
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
    case wait_kind::latch: return "for latch";
    case wait_kind::barrier: return "at barrier";
    case wait_kind::wait_group: return "for wait_group";
    case wait_kind::future: return "for future";
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

}  // namespace ulexite::detail
