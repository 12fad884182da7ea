#include <ulexite/base/panic.hpp>
#include <ulexite/base/write_soon.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace ulexite::detail {
namespace {

// One write, and no allocation, because the process may be out of memory.
void print_line(const char* prefix, const char* format, va_list arguments) noexcept {
  char line[1024];
  const auto room = static_cast<int>(sizeof line) - 1;
  int used = std::snprintf(line, sizeof line, "%s", prefix);
  used += std::vsnprintf(line + used, sizeof line - static_cast<std::size_t>(used), format, arguments);
  used = std::min(used, room);
  line[used++] = '\n';
  write_to_stderr({line, static_cast<std::size_t>(used)});
}

}  // namespace

void panic(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  print_line("ulexite: BUG: ", format, arguments);
  va_end(arguments);
  std::abort();
}

void warn(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  print_line("ulexite: ", format, arguments);
  va_end(arguments);
}

}  // namespace ulexite::detail
