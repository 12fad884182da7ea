#pragma once

// An answer to a request of <ulexite/interop/http_client.hpp>, with the body in parts.

#include <ulexite/interop/http_message.hpp>
#include <ulexite/interop/http_wire.hpp>

#include <boost/beast/core/flat_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite::http {

class client;

// Thrown when there is no connection: the server has not seen the request. It has the code and words of the failure.
class not_connected : public std::system_error {
 public:
  // Of that failure.
  explicit not_connected(const std::system_error& why) : std::system_error(why) {}
};

// An answer whose body is read in parts. For one fiber; another may write the request's body meanwhile. The client must
// outlive it. Its destructor closes the connection, unless all was read. Functions that wait are cancellation points.
// Those that read throw std::system_error with an error of Beast, of the connection or of TLS. Then later ones fail
// too, no other request gets the connection, and it is closed once the request has ended too.
class reply {
 public:
  reply(reply&&) noexcept = default;
  reply& operator=(reply&&) noexcept = default;

  // After client::begin: sends a part of the request's body. Waits until the system has taken it. False if the server
  // takes no more; it may have answered nevertheless.
  bool write(std::string_view part);
  // Ends the request's body; once more does nothing. False as for write, or if it has fewer bytes than its
  // Content-Length.
  bool end();
  // After client::begin: reads the header of the answer, which may come before the request has ended. The functions
  // that read the body do so too.
  void read_header();

  // The answer, without its body.
  [[nodiscard]] const response& header() const noexcept { return header_; }
  // The size of the body, if the header tells.
  [[nodiscard]] std::optional<std::uint64_t> body_size() const { return detail::http::length_of(header_); }
  // The next part of the body, valid until the next call; empty at the end. Waits for at least a byte.
  [[nodiscard]] std::string_view read_some();
  // Whether there may be a part without a wait.
  [[nodiscard]] bool has_part() const noexcept { return !done_ && connection_->buffer.size() > 0; }
  // All of the body, of at most `most` bytes: else the error is http::error::body_limit.
  [[nodiscard]] std::string read_all(std::uint64_t most);

 private:
  friend class client;
  struct connection {
    net::tcp_stream tcp{};
    std::unique_ptr<wire> stream{};
    boost::beast::flat_buffer buffer;
    std::string origin;
    steady_clock::time_point idle_since{};
    bool kept = false;  // it has carried a request before
    // State: what has ended, the request (1) and its answer (2). The fiber that ends the second has the connection.
    std::atomic<unsigned> ended{0};
  };
  using parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
  static constexpr std::size_t block_size = 64 * 1024;

  reply(client& of, std::unique_ptr<connection> on, bool of_head, std::uint32_t header_size)
      : client_(&of), connection_(std::move(on)), of_head_(of_head), header_size_(header_size) {}
  bool send(std::string_view bytes);
  std::size_t read_into(char* data, std::size_t size);
  void finish(unsigned part);
  void end_whole_answer();
  void end_answer(bool reusable) {
    done_ = true;
    reusable_ = reusable;
    finish(2);
  }
  [[noreturn]] void fail(const boost::system::error_code& error, const char* what);

  client* client_;
  std::unique_ptr<connection> connection_;  // null once it is given back or closed, at the end of both sides
  std::optional<std::uint64_t> left_ = 0;   // of the request's Content-Length; none: its body goes in chunks
  bool cut_ = false;                        // a write has failed
  bool sent_ = false;                       // all of the request is sent
  std::unique_ptr<parser> parser_;          // its header is moved into header_
  response header_;
  std::unique_ptr<char[]> block_;
  bool of_head_;
  std::uint32_t header_size_;
  boost::system::error_code failure_;  // of a read; later ones fail too
  bool closed_unanswered_ = false;     // before a byte of the answer
  bool reusable_ = false;              // the connection, after the answer
  bool done_ = false;                  // all is read, or the connection has failed
};

inline bool reply::send(std::string_view bytes) {
  boost::system::error_code error;
  connection_->stream->write(bytes, error);
  cut_ = cut_ || error;
  if (error) this_fiber::check();
  return !cut_;
}

inline bool reply::write(std::string_view part) {
  if (part.empty()) return true;
  if (sent_) throw std::logic_error("http::reply: a part behind the end of the request");
  if (left_) {
    if (part.size() > *left_) throw std::logic_error("http::reply: the request is longer than its Content-Length");
    *left_ -= part.size();
    return send(part);
  }
  std::string chunk;
  detail::http::append_chunk(chunk, part);
  return send(chunk);
}

inline bool reply::end() {
  if (sent_) return true;
  if (cut_ || (left_ ? *left_ > 0 : !send("0\r\n\r\n"))) return false;
  sent_ = true;
  finish(1);
  return true;
}

inline std::string_view reply::read_some() {
  if (failure_ || !parser_) read_header();
  if (done_) return {};
  if (!block_) block_.reset(new char[block_size]);
  return {block_.get(), read_into(block_.get(), block_size)};
}

inline std::string reply::read_all(std::uint64_t most) {
  if (failure_ || !parser_) read_header();
  const std::uint64_t expected = !done_ ? parser_->content_length().value_or(0) : 0;
  std::string body;
  const auto limit = boost::beast::http::make_error_code(boost::beast::http::error::body_limit);
  if (expected > most) fail(limit, "reading the answer");
  for (std::size_t size = 0; !done_; body.resize(size)) {
    body.resize(std::max<std::size_t>(std::min<std::uint64_t>(expected, block_size), size == 0 ? 2048 : 2 * size));
    while (!done_ && size < body.size()) size += read_into(body.data() + size, body.size() - size);
    if (size > most) fail(limit, "reading the answer");
  }
  return body;
}

inline void reply::read_header() {
  if (failure_) fail(failure_, "reading the answer");
  connection_->buffer.reserve(4096);  // for the header, see make_room_for_body
  for (bool first = true;; first = false) {
    parser_ = std::make_unique<parser>();
    parser_->header_limit(header_size_);
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // with none, Boost 1.74 refuses all
    parser_->skip(of_head_);
    boost::system::error_code error;
    boost::beast::http::read_header(*connection_->stream, connection_->buffer, *parser_, error);
    closed_unanswered_ =
        first && (error == boost::beast::http::error::end_of_stream ||
                  (error && !parser_->got_some() && connection_->buffer.size() == 0 &&
                   error != boost::asio::error::timed_out && error != boost::asio::error::operation_aborted));
    if (error) fail(error, "reading the answer");
    const unsigned code = parser_->get().result_int();
    if (code / 100 != 1 || code == 101) break;  // else one like 103 Early Hints, before the answer itself
  }
  static_cast<boost::beast::http::response_header<>&>(header_) = std::move(parser_->get().base());
  if (detail::http::has_strange_encoding(header_))
    fail(boost::beast::http::make_error_code(boost::beast::http::error::bad_transfer_encoding), "reading the answer");
  if (parser_->is_done()) return end_whole_answer();
  detail::http::make_room_for_body(connection_->buffer, *parser_, block_size);
}

// Bytes behind the answer belong to no request, and would pass for the next answer.
inline void reply::end_whole_answer() {
  end_answer(parser_->keep_alive() && connection_->buffer.size() == 0 && !connection_->stream->has_input() &&
             header_.result() != status::switching_protocols);
}

inline std::size_t reply::read_into(char* data, std::size_t size) {
  auto& body = parser_->get().body();
  body.data = data;
  body.size = size;
  do {
    boost::system::error_code error;
    boost::beast::http::read_some(*connection_->stream, connection_->buffer, *parser_, error);
    if (error && error != boost::beast::http::error::need_buffer) fail(error, "reading the answer");
  } while (body.size == size && !parser_->is_done());
  if (parser_->is_done()) end_whole_answer();
  return size - body.size;
}

inline void reply::fail(const boost::system::error_code& error, const char* what) {
  failure_ = error;
  if (!done_) end_answer(false);
  this_fiber::check();  // Beast reports a cancellation as one of its errors
  throw std::system_error(error, what);
}

}  // namespace ulexite::http
