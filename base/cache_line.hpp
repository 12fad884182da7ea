#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite::detail {

// What two threads must not share to stay out of each other's way. std::hardware_destructive_interference_size differs
// between compilers and their flags, and this size is part of our object layout.
inline constexpr std::size_t cache_line = 64;

}  // namespace ulexite::detail
