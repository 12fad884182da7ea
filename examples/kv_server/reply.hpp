#pragma once

// Collects replies of the Redis protocol (RESP2 or RESP3) until they are sent.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kv_server {

// The answer to a command that was understood, but cannot be executed. what() begins with a word in capitals, mostly
// ERR.
class command_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class reply_buffer {
 public:
  // `most` is the limit of one reply in bytes. A longer one throws command_error.
  explicit reply_buffer(std::size_t most) : most_(most) {}

  int protocol = 2;  // the version, 2 or 3: HELLO sets it

  void begin() noexcept { begin_ = text_.size(); }
  // Removes the reply since begin().
  void take_back() { text_.resize(begin_); }

  void simple(std::string_view text) { line('+', text); }
  void error(std::string_view text) { line('-', text); }
  void integer(std::int64_t value) { line(':', std::to_string(value)); }
  void null() { text_ += protocol == 3 ? "_\r\n" : "$-1\r\n"; }
  void array(std::size_t size) { line('*', std::to_string(size)); }  // `size` replies follow
  void set(std::size_t size) { line(protocol == 3 ? '~' : '*', std::to_string(size)); }
  void map(std::size_t size) {  // `size` keys follow, each with its value
    protocol == 3 ? line('%', std::to_string(size)) : array(2 * size);
  }
  void bulk(std::string_view bytes) {
    if (text_.size() - begin_ + bytes.size() > most_)
      throw command_error("ERR the reply would have more than " + std::to_string(most_) + " bytes");
    line('$', std::to_string(bytes.size()));
    text_ += bytes;
    text_ += "\r\n";
  }
  // Text for people, which RESP3 marks as such.
  void verbatim(std::string_view text) {
    if (protocol == 2) return bulk(text);
    line('=', std::to_string(text.size() + 4));
    text_.append("txt:").append(text).append("\r\n");
  }

  [[nodiscard]] std::string_view text() const noexcept { return text_; }

  // A connection does not keep the room that a large reply needed.
  void clear() {
    text_.clear();
    if (text_.capacity() > 256 * 1024) text_.shrink_to_fit();
  }

 private:
  void line(char mark, std::string_view text) {
    text_ += mark;
    text_ += text;
    text_ += "\r\n";
  }

  const std::size_t most_;
  std::string text_;
  std::size_t begin_ = 0;
};

}  // namespace kv_server
