#pragma once

#include <ulexite/runtime/wait/current.hpp>

namespace ulexite {

// Until the end of its scope, operations of the calling fiber that do not have to wait do not yield either. For
// example, a try_receive, or a send that finds room, lets no other fiber run on this worker. Operations that must wait
// still do, and this_fiber::yield() still yields. A fiber that holds a mutex of this library does not yield either.
// In a run of ulexite::testing they may yield all the same. Scopes nest. Keep them short, because other fibers of this
// worker wait until another worker takes them. No effect on a plain thread.
//
// A scope must end in the function and the fiber that began it.
class no_yield_scope {
 public:
  [[nodiscard]] no_yield_scope() noexcept : self_(detail::this_agent()) { ++self_.held_locks; }
  no_yield_scope(const no_yield_scope&) = delete;
  no_yield_scope& operator=(const no_yield_scope&) = delete;
  ~no_yield_scope() { --self_.held_locks; }

 private:
  detail::agent& self_;
};

// The former name.
using no_yield [[deprecated("use no_yield_scope")]] = no_yield_scope;

}  // namespace ulexite
