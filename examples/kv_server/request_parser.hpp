#pragma once

// Requests of the Redis protocol (the same in RESP2 and RESP3), parsed from bytes that arrive in portions of any size.
// Two forms:
//
//   *2\r\n$3\r\nGET\r\n$3\r\nkey\r\n    the number of arguments, each with its length: they may hold any bytes
//   GET key\r\n                         inline: words between spaces; quotes mean nothing
//
// It uses no buffered_reader, because a request is many lines and texts. Their views must stay valid together until the
// request is complete. A view of that reader is valid only until its next call.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kv_server {

struct request_limits {
  std::size_t value = 1 << 20;      // bytes of one argument, and of the line of an inline request
  std::size_t request = 4 << 20;    // bytes of all arguments of one request
  std::size_t arguments = 1 << 14;  // of one request, the command's name among them
};

// Bytes that are no request: the beginning of the next request is unknown.
class protocol_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class request_parser {
 public:
  using request = std::vector<std::string_view>;

  explicit request_parser(const request_limits& limits) : limits_(limits) {}

  // Adds what has come. Only when next() has asked for it: then what is kept is bounded, see kept().
  void feed(std::string_view bytes) { bytes_.append(bytes); }

  // How many bytes it keeps: those of an unfinished request, and less than 64 KiB that are used, beside one request.
  [[nodiscard]] std::size_t kept() const noexcept { return bytes_.size(); }

  // The next request that is there as a whole, never an empty one; good until the next call. nullptr: more bytes are
  // needed. Throws protocol_error, and then there is no next one.
  const request* next() {
    for (;;) {
      if (missing_ == 0) {
        parts_.clear();
        size_ = 0;
        if (at_ >= kept_capacity) forget_used();  // of a client that never pauses between two requests
        if (!begin_request()) break;
      }
      while (missing_ != 0)
        if (!take_argument()) return nullptr;
      if (!parts_.empty()) return &assemble();
    }
    forget_used();
    return nullptr;
  }

 private:
  struct part {
    std::size_t begin, size;
  };

  static constexpr std::size_t longest_header = 32;  // '*' or '$', a number, "\r\n"
  static constexpr std::size_t longest_inline = 64 * 1024;
  static constexpr std::size_t kept_capacity = 64 * 1024;

  // False: the line that tells what comes is not whole yet.
  bool begin_request() {
    if (at_ == bytes_.size()) return false;
    if (bytes_[at_] != '*') return take_inline();
    const auto count = take_header("invalid multibulk length", limits_.arguments);
    if (count) missing_ = static_cast<std::size_t>(std::max<std::int64_t>(*count, 0));  // none: skipped, as in Redis
    return count.has_value();
  }

  // False: there is not all of it.
  bool take_argument() {
    if (!length_) {
      if (at_ == bytes_.size()) return false;
      if (bytes_[at_] != '$') throw protocol_error("expected '$', got " + shown(bytes_.substr(at_, 1)));
      const auto length = take_header("invalid bulk length", limits_.value);
      if (!length) return false;
      if (*length < 0) throw protocol_error("invalid bulk length: " + std::to_string(*length));
      length_ = static_cast<std::size_t>(*length);
      size_ += *length_;
      if (size_ > limits_.request)
        throw protocol_error("the arguments have more than " + std::to_string(limits_.request) + " bytes");
    }
    if (bytes_.size() - at_ < *length_ + 2) return false;
    if (const auto end = bytes_.substr(at_ + *length_, 2); end != "\r\n")
      throw protocol_error("expected \\r\\n behind an argument, got " + shown(end));
    parts_.push_back({at_, *length_});
    at_ += *length_ + 2;
    length_.reset();
    --missing_;
    return true;
  }

  bool take_inline() {
    const std::size_t limit = std::min(longest_inline, limits_.value);
    const std::size_t end = bytes_.find('\n', at_);
    if (std::min(end, bytes_.size()) - at_ > limit)
      throw protocol_error("too big inline request: more than " + std::to_string(limit) + " bytes");
    if (end == bytes_.npos) return false;
    while ((at_ = std::min(bytes_.find_first_not_of(" \t\r", at_), end)) != end) {
      const std::size_t stop = bytes_.find_first_of(" \t\r\n", at_);
      parts_.push_back({at_, stop - at_});
      at_ = stop;
    }
    at_ = end + 1;
    if (parts_.size() > limits_.arguments)
      throw protocol_error("more than " + std::to_string(limits_.arguments) + " arguments");
    return true;
  }

  // The number in a line that begins with a mark. Nothing: the line is not whole yet.
  std::optional<std::int64_t> take_header(const char* what, std::size_t most) {
    const std::string_view ahead = std::string_view(bytes_).substr(at_ + 1, longest_header);
    const std::size_t end = ahead.find('\n');
    if (end == ahead.npos && ahead.size() < longest_header) return std::nullopt;
    std::string_view digits = ahead.substr(0, end);
    const bool ends = end != ahead.npos && digits.ends_with('\r');
    if (ends) digits.remove_suffix(1);
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!ends || error != std::errc() || stop != digits.data() + digits.size())
      throw protocol_error(std::string(what) + ": " + shown(digits) + " is no number");
    if (number > static_cast<std::int64_t>(most))
      throw protocol_error(std::string(what) + ": " + std::to_string(number) + ", the most is " + std::to_string(most));
    at_ += 1 + end + 1;
    return number;
  }

  // In quotes, and such that it does no harm in a line.
  static std::string shown(std::string_view bytes) {
    std::string text = "'";
    for (const char c : bytes) text += c >= ' ' && c <= '~' ? c : '?';
    return text + '\'';
  }

  const request& assemble() {
    request_.clear();
    for (const part& each : parts_) request_.push_back(std::string_view(bytes_).substr(each.begin, each.size));
    return request_;
  }

  // Between two requests. A connection does not keep the room that a large one needed.
  void forget_used() {
    bytes_.erase(0, at_);
    at_ = 0;
    if (bytes_.capacity() > kept_capacity && bytes_.size() < kept_capacity / 2) bytes_.shrink_to_fit();
    if (parts_.capacity() * sizeof(part) > kept_capacity) {
      parts_ = {};
      request_ = {};
    }
  }

  const request_limits limits_;
  std::string bytes_;
  std::size_t at_ = 0;                 // the bytes before it are parsed
  std::size_t missing_ = 0;            // arguments that are still to come; 0: between two requests
  std::optional<std::size_t> length_;  // of the argument at at_, if that is known
  std::vector<part> parts_;            // the arguments that are there
  std::size_t size_ = 0;               // bytes of the arguments, of the one at at_ too
  request request_;
};

}  // namespace kv_server
