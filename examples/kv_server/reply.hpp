#pragma once

// Collects replies of the Redis protocol (RESP2) until they are sent.

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

  void begin() noexcept { begin_ = text_.size(); }
  // Removes the reply since begin().
  void take_back() { text_.resize(begin_); }

  void simple(std::string_view text) { line('+', text); }
  void error(std::string_view text) { line('-', text); }
  void integer(std::int64_t value) { line(':', std::to_string(value)); }
  void null() { text_ += "$-1\r\n"; }
  void array(std::size_t size) { line('*', std::to_string(size)); }  // `size` replies follow
  void bulk(std::string_view bytes) {
    if (text_.size() - begin_ + bytes.size() > most_)
      throw command_error("ERR the reply would have more than " + std::to_string(most_) + " bytes");
    line('$', std::to_string(bytes.size()));
    text_ += bytes;
    text_ += "\r\n";
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
