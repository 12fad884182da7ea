#pragma once

#include "answer.hpp"
#include "limits.hpp"
#include "wire.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace http_server {

// The answer as it goes out. Sending functions throw as wire::fail does, when the connection fails, or the client does
// not take a block in the write time. A block is 64 KiB, or 256 KiB of a file that the system sends. All writes
// together also have a limit: the write time plus the time of the answer at the lowest allowed rate. Otherwise a client
// that takes a block from time to time would hold its connection for hours.
class outgoing {
 public:
  outgoing(wire& to, const limits& limits) : wire_(to), limits_(limits) {}

  // The whole of an answer. Also throws std::system_error when its file cannot be read, and std::runtime_error when the
  // file has become shorter.
  void send(answer made);

  // An answer of unknown length. In chunks; to HTTP/1.0 without, up to the end of the connection.
  void begin_stream(response_header header);
  void send_part(std::string_view part);
  void end_stream();

  [[nodiscard]] bool begun() const noexcept { return status_ != 0; }
  [[nodiscard]] bool keep_alive() const noexcept { return keep_alive_; }
  [[nodiscard]] unsigned status() const noexcept { return status_; }     // 0: nothing was sent
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of the body

 private:
  std::string begin(const response_header& header);
  // Calls send(), which sends up to `size` bytes and returns how many of the body, within the time for that.
  template <class Send>
  std::size_t timed(std::size_t size, Send&& send);
  void write(std::string_view block, std::size_t of_body);
  // `block` is the header.
  void send_file(std::string block, open_file& file, const byte_range& part);
  void copy_file(std::string block, open_file& file, const byte_range& part);
  template <class Send>
  static void in_blocks(const byte_range& part, std::size_t block_size, Send&& send);
  [[nodiscard]] std::chrono::nanoseconds time_for(std::size_t block) const;

  wire& wire_;
  const limits& limits_;
  unsigned status_ = 0;
  std::uint64_t bytes_ = 0;
  std::chrono::nanoseconds spent_{};  // in writes
  bool keep_alive_ = false, chunked_ = false;
};

}  // namespace http_server
