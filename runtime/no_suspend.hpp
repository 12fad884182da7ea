#pragma once

#include <ulexite/runtime/wait/agent.hpp>

#include <source_location>

namespace ulexite {

// While it lives, the calling fiber must not wait: a stretch in which no other fiber of its worker may run, because it
// has a thread_local half changed, or stands on a stack that is not its own. An operation that would have to wait throws
// usage_error with the places of both; one that cannot throw (a condition variable that is to lock its mutex again)
// ends the process with them. Yields do nothing, and what is forked is not offered to other workers. May be nested.
// Nothing on a plain thread.
class [[nodiscard]] no_suspend {
 public:
  // Throws std::bad_alloc.
  [[nodiscard]] explicit no_suspend(std::source_location where = std::source_location::current())
      : no_suspend(where, nullptr) {}
  // The same for code that calls a function of another, as a hook. What is thrown names `by`, a literal, if the fiber has
  // room for it; nothing is allocated.
  [[nodiscard]] explicit no_suspend(const char* by) noexcept : no_suspend(std::source_location(), by) {}
  // By the fiber that made it.
  ~no_suspend();
  no_suspend(const no_suspend&) = delete;
  no_suspend& operator=(const no_suspend&) = delete;

 private:
  no_suspend(std::source_location where, const char* by);

  detail::agent* forbidden_ = nullptr;  // null: nothing was changed
};

}  // namespace ulexite
