#pragma once

#include <ulexite/base/standard.hpp>

#include <cstdint>

namespace ulexite::detail {

// The number in an environment variable; `otherwise` if there is none. A value that is no number counts as none, and is
// reported on stderr. Any thread, if no thread calls setenv at the same time.
std::uint64_t number_of_environment(const char* variable, std::uint64_t otherwise) noexcept;

}  // namespace ulexite::detail
