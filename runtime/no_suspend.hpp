#pragma once

#include <ulexite/runtime/wait/agent.hpp>

#include <source_location>

namespace ulexite {

// Forbids the calling fiber to wait until the object is destroyed. Use it where no other fiber of the worker may run.
// Examples: while a thread_local is half changed, or while the fiber runs on a foreign stack. An operation that would
// have to wait throws usage_error that names both places. An operation that cannot throw (a condition variable that
// must lock its mutex again) ends the process with this message. Yields do nothing. Forks are not offered to other
// workers. Scopes nest. No effect on a plain thread.
class [[nodiscard]] no_suspend {
 public:
  // Begins the scope. Throws std::bad_alloc.
  [[nodiscard]] explicit no_suspend(std::source_location where = std::source_location::current())
      : no_suspend(where, nullptr) {}
  // The same for code that calls foreign functions, such as hooks. The exception of a wait names `by`, a literal, if
  // the fiber has room for it; nothing is allocated.
  [[nodiscard]] explicit no_suspend(const char* by) noexcept : no_suspend(std::source_location(), by) {}
  // Ends the scope; only its own fiber may call it.
  ~no_suspend();
  no_suspend(const no_suspend&) = delete;
  no_suspend& operator=(const no_suspend&) = delete;

 private:
  no_suspend(std::source_location where, const char* by);

  detail::agent* forbidden_ = nullptr;  // null: nothing was changed
};

}  // namespace ulexite
