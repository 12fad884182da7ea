#pragma once

// An exception for each failed status of gRPC, and a status for each exception.

#include <ulexite/base/error.hpp>

#include <grpcpp/support/status.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace ulexite::rpc {

// A status of a call as an exception. A handler that throws it answers with this status.
class status_error : public std::runtime_error {
 public:
  // The text is "NUMBER: MESSAGE", with the number of the status code.
  explicit status_error(::grpc::Status status)
      : std::runtime_error(std::to_string(status.error_code()) + ": " + status.error_message()),
        status_(std::move(status)) {}

  // The status.
  [[nodiscard]] const ::grpc::Status& status() const noexcept { return status_; }

 private:
  ::grpc::Status status_;
};

// Throws status_error unless the status is OK. Never waits.
inline void check(const ::grpc::Status& status) {
  if (!status.ok()) throw status_error(status);
}

// The status with which a handler answers that ends with this exception: that of a status_error; DEADLINE_EXCEEDED or
// CANCELLED for the end of a wait; RESOURCE_EXHAUSTED if the runtime is at max_fibers or memory is short; otherwise
// UNKNOWN with the text of the exception, as with other implementations of gRPC. Never waits.
[[nodiscard]] inline ::grpc::Status status_of(const std::exception_ptr& failure) {
  using code = ::grpc::StatusCode;
  try {
    std::rethrow_exception(failure);
  } catch (const status_error& error) {
    return error.status();
  } catch (const deadline_exceeded&) {
    return {code::DEADLINE_EXCEEDED, "the deadline has passed"};
  } catch (const operation_cancelled&) {
    return {code::CANCELLED, "the handler was asked to stop"};
  } catch (const std::bad_alloc&) {
    return {code::RESOURCE_EXHAUSTED, "out of memory"};
  } catch (const std::system_error& error) {
    if (error.code() != errc::limit_reached) return {code::UNKNOWN, error.what()};
    return {code::RESOURCE_EXHAUSTED, "the server has as many fibers as it may have"};
  } catch (const std::exception& error) {
    return {code::UNKNOWN, error.what()};
  } catch (...) {
    return {code::UNKNOWN, "an exception that is no std::exception"};
  }
}

}  // namespace ulexite::rpc
