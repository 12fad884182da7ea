#pragma once

#include <ulexite/runtime/wait/agent.hpp>

#include <source_location>

namespace ulexite {

// Forbids the calling fiber to wait until the object is destroyed. Use it where no other fiber of the worker may run.
// Examples: while a thread_local is half changed, or while the fiber runs on a foreign stack. An operation that would
// have to wait throws usage_error that names both places. An operation that cannot throw (a condition variable that
// must lock its mutex again) ends the process with this message. Yields do nothing. Forks are not offered to other
// workers. Scopes nest. No effect on a plain thread.
class [[nodiscard]] no_suspend_scope {
 public:
  // Begins the scope. Throws std::bad_alloc.
  [[nodiscard]] explicit no_suspend_scope(std::source_location where = std::source_location::current())
      : no_suspend_scope(where, nullptr) {}
  // The same for code that calls foreign functions, such as hooks. The exception of a wait names `by`, a literal, if
  // the fiber has room for it; nothing is allocated.
  [[nodiscard]] explicit no_suspend_scope(const char* by) noexcept : no_suspend_scope(std::source_location(), by) {}
  // Ends the scope; only its own fiber may call it.
  ~no_suspend_scope();
  no_suspend_scope(const no_suspend_scope&) = delete;
  no_suspend_scope& operator=(const no_suspend_scope&) = delete;

 private:
  no_suspend_scope(std::source_location where, const char* by);

  detail::agent* forbidden_ = nullptr;  // null: nothing was changed
};

// The former name.
using no_suspend [[deprecated("use no_suspend_scope")]] = no_suspend_scope;

}  // namespace ulexite
