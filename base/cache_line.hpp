#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite::detail {

// The unit of memory that two threads should not share, in bytes. std::hardware_destructive_interference_size differs
// between compilers and their flags, but this size is part of our object layout.
inline constexpr std::size_t cache_line = 64;

}  // namespace ulexite::detail
