#pragma once

#include <ulexite/base/standard.hpp>
#include <ulexite/base/write_soon.hpp>

#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// A line that is built without printf, so that a signal handler may, and cut if it becomes too long.
class report_line {
 public:
  report_line& text(const char* text) noexcept {
    while (*text != '\0' && used_ < sizeof text_ - 1) text_[used_++] = *text++;
    return *this;
  }

  report_line& number(std::uint64_t value, unsigned base = 10) noexcept {
    char digits[24];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do {
      *--first = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    return text(first);
  }

  // How many letters fit before it is cut.
  [[nodiscard]] std::size_t room() const noexcept { return sizeof text_ - 1 - used_; }

  // Writes what is there to stderr; a longer line goes on.
  void flush() noexcept {
    write_to_stderr({text_, used_});
    used_ = 0;
  }
  // Ends the line.
  void write() noexcept {
    text_[used_++] = '\n';
    flush();
  }

 private:
  char text_[1024];
  std::size_t used_ = 0;
};

}  // namespace ulexite::detail
