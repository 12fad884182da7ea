#pragma once

// Handles an exception that left a fiber and that no handle took.

#include <ulexite/fiber/fiber.hpp>

#include <exception>
#include <functional>
#include <string_view>

namespace ulexite::detail {

using unhandled_handler = std::function<void(std::string_view, std::exception_ptr)>;

// Calls `handler`. If that is empty, reports on stderr and terminates.
void report_unhandled(const unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept;

}  // namespace ulexite::detail
