#pragma once

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

  static void text(std::ostream& out, std::string_view value) {
    out << '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        out << '\\' << c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        out << escaped;
      } else {
        out << c;
      }
    }
    out << '"';
  }

 private:
  std::ostream& out_;
  const char close_;
  bool first_ = true;
};

}  // namespace ulexite::detail
