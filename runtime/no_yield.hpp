#pragma once

#include <ulexite/runtime/wait/current.hpp>

namespace ulexite {

// While it lives, operations of the calling fiber that need not wait do not yield either: a try_send, or a send that
// finds room, lets no other fiber run on this worker. What has to wait still does, and this_fiber::yield() still
// yields. The same holds while a fiber holds a mutex of this library. Scopes nest. Keep them short, because other
// fibers of this worker wait until another worker takes them. Nothing on a plain thread.
//
// A scope stays in the function that made it: its end must be reached by the fiber that began it.
class no_yield {
 public:
  [[nodiscard]] no_yield() noexcept : self_(detail::this_agent()) { ++self_.held_locks; }
  no_yield(const no_yield&) = delete;
  no_yield& operator=(const no_yield&) = delete;
  ~no_yield() { --self_.held_locks; }

 private:
  detail::agent& self_;
};

}  // namespace ulexite
