#pragma once

#include <ulexite/base/standard.hpp>

#include <stdexcept>
#include <system_error>

namespace ulexite {

// Errors of this library's operations. Refusals of the system (no memory map, no thread, no file descriptor) are
// std::system_error with the system's own code instead.
enum class errc {
  cancelled = 1,      // the fiber was asked to stop
  deadline_exceeded,  // the fiber's deadline passed first
  channel_closed,     // a send on a closed channel
  no_runtime,         // called outside any runtime
  limit_reached,      // runtime_options::max_fibers
  deadlock,           // all fibers wait for each other (runtime_options::on_deadlock)
};

// The category of errc, named "ulexite".
const std::error_category& error_category() noexcept;

// The code as a std::error_code.
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), error_category()}; }

// Thrown by a cancellation point in a fiber that was asked to stop. Each later cancellation point throws again.
class operation_cancelled : public std::system_error {
 public:
  operation_cancelled() : operation_cancelled(errc::cancelled) {}

 protected:
  explicit operation_cancelled(errc code) : std::system_error(make_error_code(code)) {}
};

// Thrown by a cancellation point after the fiber's deadline (deadline_scope, timeout) has passed. Each later
// cancellation point in the scope throws again.
class deadline_exceeded : public operation_cancelled {
 public:
  deadline_exceeded() : operation_cancelled(errc::deadline_exceeded) {}
};

// Thrown by a send on a closed channel.
class channel_closed : public std::system_error {
 public:
  channel_closed() : std::system_error(make_error_code(errc::channel_closed)) {}
};

// Thrown when a rule of use is broken (unlock of a mutex that another fiber holds, a negative wait_group): a defect of
// the calling program. The object is unchanged.
class usage_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace ulexite

template <>
struct std::is_error_code_enum<ulexite::errc> : std::true_type {};
