#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// Reports a broken rule of the library itself on stderr, as one line "ulexite: BUG: ...", and aborts.
// `format` is printf's. Any thread.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void panic(const char* format, ...) noexcept;

// Prints one line "ulexite: ..." on stderr, with one write. `format` is printf's. Any thread.
[[gnu::format(printf, 1, 2), gnu::cold]] void warn(const char* format, ...) noexcept;

}  // namespace ulexite::detail
