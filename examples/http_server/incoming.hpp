#pragma once

#include "limits.hpp"
#include "wire.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace http_server {

using request = boost::beast::http::request<boost::beast::http::buffer_body>;

// An incoming request: its header, then its body in parts, so a large body needs no memory. Functions that read throw
// `refusal` for a wrong request or one over a limit, and as wire::fail for failures of the connection.
class incoming {
 public:
  static constexpr std::size_t block_size = 64 * 1024;  // of a body

  // `buffer` has bytes that were read already, and keeps bytes after the request. Its maximum must leave room for a
  // header and a block. It is also the limit of a chunk's extension and of a trailer.
  incoming(wire& from, boost::beast::flat_buffer& buffer, const limits& limits);

  // Reads the header. The header time begins.
  void read_header();
  [[nodiscard]] const request& header() const { return parser_.get(); }
  // Method and target as they were sent; empty if they were not read.
  [[nodiscard]] std::string_view method() const;
  [[nodiscard]] std::string_view target() const;
  // The field's lines, joined by commas; empty if there is none. A field that may have one line only so becomes
  // malformed if it has several.
  [[nodiscard]] std::string field(boost::beast::http::field name) const;

  // Makes the answer say that no other request may follow.
  void make_last() { parser_.get().keep_alive(false); }

  // Whether the client holds its body back until it is asked for. If so, the body does not have to be read before an
  // answer.
  [[nodiscard]] bool body_held_back() const;
  // The next part of the body, valid until the next call; empty at the end. The body time begins with the first.
  [[nodiscard]] std::string_view read_body();
  void skip_body();

 private:
  void check_header() const;
  [[nodiscard]] std::string expectation() const;
  void begin_body();
  [[noreturn]] void fail(const boost::system::error_code& error, const char* part, std::chrono::nanoseconds time) const;

  wire& wire_;
  boost::beast::flat_buffer& buffer_;
  const limits& limits_;
  boost::beast::http::request_parser<boost::beast::http::buffer_body> parser_;
  std::chrono::steady_clock::time_point body_deadline_{};
  std::vector<char> block_;  // empty until the body is begun
};

}  // namespace http_server
