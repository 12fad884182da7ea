#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string_view>

namespace ulexite::detail {

// Writes one object or array of JSON.
class json {
 public:
  json(std::ostream& out, char open, char close) : out_(out), close_(close) { out_ << open; }
  json(const json&) = delete;
  json& operator=(const json&) = delete;
  ~json() { out_ << close_; }

  // Call it before the next element of an array.
  std::ostream& next() {
    if (!first_) out_ << ',';
    first_ = false;
    return out_;
  }
  // Call it before the value of the next member of an object.
  std::ostream& key(std::string_view name) {
    text(next(), name);
    return out_ << ':';
  }
  void number(std::string_view name, std::uint64_t value) { key(name) << value; }
  void flag(std::string_view name, bool value) { key(name) << (value ? "true" : "false"); }
  void string(std::string_view name, std::string_view value) { text(key(name), value); }

  // Names come from the program, in any bytes. Bytes that are not UTF-8 become U+FFFD, because readers refuse them.
  static void text(std::ostream& out, std::string_view value) {
    out << '"';
    while (!value.empty()) {
      const char c = value.front();
      const std::size_t size = size_of_character(value);
      if (size == 0) {
        out << "\\ufffd";
      } else if (c == '"' || c == '\\') {
        out << '\\' << c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        out << escaped;
      } else {
        out << value.substr(0, size);
      }
      value.remove_prefix(std::max<std::size_t>(size, 1));
    }
    out << '"';
  }

  // The size of the character with which the text begins; 0 if that is not UTF-8 (RFC 3629, section 4).
  static std::size_t size_of_character(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return 0;
    const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (std::size_t i = 2; i < size; ++i)
      if ((byte(i) & 0xc0) != 0x80) return 0;
    return size;
  }

 private:
  std::ostream& out_;
  const char close_;
  bool first_ = true;
};

}  // namespace ulexite::detail
