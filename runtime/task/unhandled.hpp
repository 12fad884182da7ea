#pragma once

// Handles an exception that left a fiber and that no handle took. And the words for a fiber in messages.

#include <ulexite/fiber/fiber.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace ulexite {
struct unhandled_exception;
}

namespace ulexite::detail {

using unhandled_handler = std::function<void(const unhandled_exception&)>;

// "fiber #7 'name'", without the name if it is empty.
std::string words_for_fiber(std::uint64_t id, std::string_view name);

// Calls `handler`. If that is empty, reports on stderr and terminates.
void report_unhandled(const unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept;

}  // namespace ulexite::detail
