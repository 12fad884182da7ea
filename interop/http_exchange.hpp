#pragma once

// One request to a server, and its answer: what a handler of <ulexite/interop/http_server.hpp> gets that reads or
// writes a body in parts.

#include <ulexite/interop/http_message.hpp>
#include <ulexite/interop/http_wire.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <boost/beast/core/flat_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite::http {

// What a server allows its clients. Each time limit ends the connection.
struct limits {
  std::chrono::nanoseconds handshake_time = std::chrono::seconds(10);  // for the handshake of TLS
  std::chrono::nanoseconds idle_time = std::chrono::seconds(30);       // until the next request begins
  std::chrono::nanoseconds header_time = std::chrono::seconds(10);     // for all of its header, from its first byte on
  std::chrono::nanoseconds body_time = std::chrono::seconds(60);       // for all of its body, from the first read on
  std::chrono::nanoseconds write_time = std::chrono::seconds(30);  // until a block is taken; twice that for a file's
  std::chrono::nanoseconds connection_time{0};  // after it a request is the last of its connection; 0: no limit
  std::chrono::nanoseconds linger_time = std::chrono::seconds(1);  // for the client to take the last answer
  std::uint64_t least_rate = 16 * 1024;   // bytes of an answer per second, for all of it, plus write_time; 0: no limit
  std::uint32_t header_size = 16 * 1024;  // bytes
  std::uint64_t body_size = 1024 * 1024;  // bytes
};

// A request and its answer. A handler reads the body, if it wants it, then answers: by send(), or by begin() and
// write(). An unread body is read and dropped before the answer of send(), else after the answer. All waits are
// cancellation points. A failure of the connection, or a limit of time for a write, throws a std::system_error of
// connection_aborted; a wrong request, or one over a limit, throws a refusal. Let both pass.
//
// For the fiber of the handler. Another may read the body while that answers by begin() and write(), once
// ask_for_body() was called.
class exchange {
 public:
  static constexpr std::size_t block_size = 64 * 1024;  // the largest part of a body that is read at once

  // Of a server. `buffer` has bytes that were read already, and keeps those behind the request. Its maximum must leave
  // room for a header and a block. It is also the limit of a chunk's extension and of a trailer.
  exchange(wire& stream, boost::beast::flat_buffer& buffer, const http::limits& limits, std::stop_token closing = {})
      : wire_(stream), buffer_(buffer), limits_(limits), closing_(std::move(closing)) {
    parser_.header_limit(limits.header_size);
    parser_.body_limit(limits.body_size);
    asked_.method_string("");
  }
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  // Reads the header. A server calls it before the handler.
  void read_header() {
    wire_.tcp().expires_after(limits_.header_time);
    boost::system::error_code error;
    boost::beast::http::read_header(wire_, buffer_, parser_, error);
    if (error) fail(error, "header", limits_.header_time);
    static_cast<fields_of_request&>(asked_) = std::move(parser_.get().base());
    is_head_ = asked_.method() == verb::head;
    detail::http::check_header(asked_);                                    // a request that it refuses is the last
    if (parser_.is_done()) body_.store(whole, std::memory_order_relaxed);  // no other fiber knows this yet
    keep_alive_ = parser_.keep_alive();  // the parser sees all lines of Connection, and the header only the first
  }

  // The request. Its body is empty until read_body().
  [[nodiscard]] const http::request& request() const noexcept { return asked_; }
  // The connection: its endpoints, and limits of time for what is not done here.
  [[nodiscard]] net::tcp_stream& tcp() const noexcept { return wire_.tcp(); }
  // A token that is set when the server stops. Endless answers should end then.
  [[nodiscard]] const std::stop_token& closing() const noexcept { return closing_; }
  // When this request began.
  [[nodiscard]] steady_clock::time_point begun_at() const noexcept { return begun_at_; }

  // Whether the client holds its body back until it is asked for (Expect: 100-continue). The first read asks for it. If
  // there is none, the connection ends with the answer.
  [[nodiscard]] bool body_held_back() const {
    return body() == unread && asked_.version() >= 11 && boost::beast::iequals(asked_[field::expect], "100-continue");
  }
  // Asks for such a body, and begins the time for it. The first read does so too.
  void ask_for_body() {
    if (body() != unread) return;
    body_deadline_ = detail::http::end_of(limits_.body_time);
    if (body_held_back()) {
      wire_.tcp().writes_expire_after(limits_.write_time);
      wire_.write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    body_.store(begun, std::memory_order_relaxed);  // flag
    detail::http::make_room_for_body(buffer_, parser_, block_size);
  }
  // The size of the body, if the header tells.
  [[nodiscard]] std::optional<std::uint64_t> body_size() const {
    const auto size = parser_.content_length();
    return size ? std::optional<std::uint64_t>(*size) : std::nullopt;
  }
  // The next part of the body, valid until the next call; empty at the end. Waits for at least a byte.
  [[nodiscard]] std::string_view read_some() {
    if (parser_.is_done()) return {};
    if (!block_) block_.reset(new char[block_size]);
    return {block_.get(), read_into(block_.get(), block_size)};
  }
  // All of the body, which request().body() has from then on.
  const std::string& read_body() {
    std::string& body = asked_.body();
    const std::uint64_t expected = parser_.content_length().value_or(0);
    for (std::size_t size = body.size(); !parser_.is_done();) {
      if (size == body.size())
        body.resize(std::max<std::size_t>(std::min<std::uint64_t>(expected, block_size), size == 0 ? 2048 : 2 * size));
      size += read_into(body.data() + size, body.size() - size);
      if (parser_.is_done()) body.resize(size);
    }
    return body;
  }
  // Reads the rest of the body and drops it.
  void skip_body() {
    while (!read_some().empty()) {
    }
  }

  // Sends an answer. Sets its Content-Length, Connection, and Date if it has none. The answer to HTTP/1.0 is one of
  // HTTP/1.1 too (RFC 9110, 2.5) unless its version() says otherwise.
  void send(const http::response& made) {
    if (!is_whole() && !body_held_back()) skip_body();
    send_unread(made);
  }
  // Sends an answer without reading the rest of the body, so that this is the last request if there is one.
  void send_unread(const http::response& made) {
    if (!is_whole()) keep_alive_ = false;
    const bool has_none = made.result() == status::no_content || made.result() == status::not_modified;
    begin(made, has_none ? std::nullopt : std::optional<std::uint64_t>(made.body().size()));
    if (!has_none) write(made.body());
    end();
  }

  // Begins an answer with parts of a body. With a Content-Length, which is `size` if that is given, they must have that
  // size; without, they go in chunks, and to HTTP/1.0, or with that version(), up to the end of the connection. The
  // header leaves with the first part, or by flush(). A header with "Connection: close" makes this the last request.
  // Throws std::invalid_argument for a line's end in the reason or in a field.
  void begin(const boost::beast::http::response_header<>& header, std::optional<std::uint64_t> size = {}) {
    const bool is_old = header.version() < 11;
    open_header(header.result_int(), view(header.reason()), is_old, size ? size : detail::http::length_of(header));
    std::string connection;  // such as Upgrade
    bool is_dated = false;
    for (const auto& each : header) {
      const field name = each.name();
      is_dated = is_dated || name == field::date;
      if (name != field::connection) {
        if (name != field::content_length && name != field::transfer_encoding)
          append_field(pending_, view(each.name_string()), view(each.value()));
      } else if (boost::beast::http::token_list(each.value()).exists("close")) {
        keep_alive_ = false;
      } else {
        (connection += connection.empty() ? "" : ", ") += view(each.value());
      }
    }
    close_header(header.result_int(), std::move(connection), is_old, is_dated);
  }
  // The same with the fields as lines that append_field has made. This saves an allocation for each field. There must
  // be no Content-Length, Connection, Transfer-Encoding or Date, because they are added. Throws std::invalid_argument
  // if the last line has no end.
  void begin(status code, std::string_view fields, std::optional<std::uint64_t> size) {
    if (!fields.empty() && !fields.ends_with("\r\n"))
      throw std::invalid_argument("http::exchange: the last field has no line's end");
    open_header(static_cast<unsigned>(code), {}, false, size);
    pending_ += fields;
    close_header(static_cast<unsigned>(code), {}, false, false);
  }
  // Sends a part of the body. Waits until the system has taken it. The answer to HEAD has none: it is dropped.
  void write(std::string_view part) {
    if (part.empty() || !takes(part.size())) return;
    if (chunked_) {
      detail::http::append_chunk(pending_, part);
    } else if (pending_.empty()) {
      return timed(part.size(), [&] { return wire_.write(part), part.size(); });
    } else {
      pending_ += part;
    }
    send_pending(part.size());
  }
  // Sends a part of a file as a part of the body, as tcp_stream::send_file. Throws std::logic_error if sends_files() is
  // false, or the answer has no Content-Length; std::runtime_error if the file ends before; std::system_error if it
  // cannot be read.
  void send_file(int file, std::uint64_t offset, std::uint64_t size) {
    constexpr std::size_t most = 4 << 20;  // more than a socket takes at a time
    if (size == 0 || !takes(size)) return;
    if (!sends_files()) throw std::logic_error("http::exchange: send_file over TLS");
    if (chunked_) throw std::logic_error("http::exchange: send_file into an answer without a Content-Length");
    timed(pending_.size(), [&] { return wire_.write_before_file(std::exchange(pending_, {})), std::size_t{0}; });
    while (size > 0) {
      std::size_t got = 0;
      const auto next = static_cast<std::size_t>(std::min<std::uint64_t>(size, most));
      timed(std::min(next, wire::file_block), [&] { return got = wire_.send_file(file, offset, next); });
      if (got == 0) throw std::runtime_error("a file became shorter while it was sent");
      offset += got;
      size -= got;
    }
  }
  // Whether send_file works: not in TLS.
  [[nodiscard]] bool sends_files() const noexcept { return wire_.sends_files(); }
  // Sends the header now.
  void flush() {
    if (!pending_.empty()) send_pending(0);
  }
  // Ends an answer that was begun. The server calls it after the handler. Throws std::logic_error if there was none, or
  // if it has fewer bytes than its Content-Length.
  void end() {
    if (ended_ || upgraded_) return;
    if (result_ == 0) throw std::logic_error("http::exchange: the handler has not answered");
    if (!bodyless_ && left_.value_or(0) > 0)
      throw std::logic_error("http::exchange: " + std::to_string(*left_) + " bytes of the answer are missing");
    if (chunked_) pending_ += "0\r\n\r\n";
    ended_ = true;
    flush();
  }

  // Takes the connection out of HTTP: the caller answers by itself, such as by Beast's websocket::stream<http::wire&>
  // and accept(request()), and the connection ends with the handler. Its limits of time are off, and a stop of the
  // server does not end its reads: see closing(). An exception of the handler resets it, but for one of the connection.
  // Throws a refusal if bytes came before the answer.
  [[nodiscard]] wire& upgrade() {
    keep_alive_ = false;
    if (!is_whole() || buffer_.size() > 0)
      throw refusal(status::bad_request, "bytes came before the answer to an upgrade");
    upgraded_ = true;
    wire_.tcp().expires_never();
    return wire_;
  }

  // Makes this the last request of the connection; before the answer begins.
  void make_last() noexcept { keep_alive_ = false; }
  // Whether another request may follow, as far as is known.
  [[nodiscard]] bool keep_alive() const noexcept { return keep_alive_; }
  // Whether all of the request was read.
  [[nodiscard]] bool is_whole() const noexcept { return body() == whole; }
  // The answer's status, 0 if there is none yet.
  [[nodiscard]] unsigned result_int() const noexcept { return result_; }
  // The bytes of the answer's body that were sent.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  // Whether all of the answer was sent, or the connection is in other hands.
  [[nodiscard]] bool ended() const noexcept { return ended_ || upgraded_; }

 private:
  using fields_of_request = boost::beast::http::request_header<>;
  enum body_state : std::uint8_t { unread, begun, whole, failed };

  [[nodiscard]] body_state body() const noexcept { return body_.load(std::memory_order_relaxed); }  // flag
  std::size_t read_into(char* data, std::size_t size) {
    ask_for_body();
    wire_.tcp().reads_expire_at(body_deadline_);
    auto& body = parser_.get().body();
    body.data = data;
    body.size = size;
    do {
      boost::system::error_code error;
      boost::beast::http::read_some(wire_, buffer_, parser_, error);
      if (error && error != boost::beast::http::error::need_buffer) fail(error, "body", limits_.body_time);
    } while (body.size == size && !parser_.is_done());
    if (parser_.is_done()) body_.store(whole, std::memory_order_relaxed);  // flag
    return size - body.size;
  }

  // Counts bytes of the body that the handler sends; false if the answer has no body.
  bool takes(std::uint64_t size) {
    if (result_ == 0 || ended_) throw std::logic_error("http::exchange: a body without an answer that was begun");
    if (bodyless_) return false;
    if (left_ && size > *left_) throw std::logic_error("http::exchange: the answer is longer than its Content-Length");
    if (left_) *left_ -= size;
    return true;
  }
  // Begins a header with the status line.
  void open_header(unsigned number, std::string_view reason, bool is_old, std::optional<std::uint64_t> size) {
    constexpr std::uint64_t small = 16 * 1024;  // room for such a body, because its first part goes with the header
    if (result_ != 0) throw std::logic_error("http::exchange: a second answer to one request");
    if (reason.find_first_of("\r\n") != reason.npos)
      throw std::invalid_argument("http::exchange: the reason has a line's end in it");
    if (body_held_back() || body() == failed || closing_.stop_requested()) keep_alive_ = false;
    const status code = boost::beast::http::int_to_status(number);
    bodyless_ = is_head_ || code == status::no_content || code == status::not_modified;
    left_ = code == status::no_content ? std::nullopt : size;
    chunked_ = !left_ && !bodyless_ && asked_.version() >= 11 && !is_old;
    if (!left_ && !bodyless_ && !chunked_) keep_alive_ = false;
    const bool fits = !bodyless_ && left_ && *left_ <= small;
    pending_.reserve(512 + (fits ? *left_ : 0));
    pending_ = is_old ? "HTTP/1.0 " : "HTTP/1.1 ";
    (pending_ += std::to_string(number)) += ' ';
    (pending_ += reason.empty() ? view(boost::beast::http::obsolete_reason(code)) : reason) += "\r\n";
  }
  // Adds the fields that follow from the answer's state. It has begun then: if a field before was refused, another
  // answer may follow.
  void close_header(unsigned number, std::string connection, bool is_old, bool is_dated) {
    if (left_) append_field(pending_, "Content-Length", std::to_string(*left_));
    if (chunked_) append_field(pending_, "Transfer-Encoding", "chunked");
    const bool is_default = asked_.version() >= 11 ? keep_alive_ : !keep_alive_ && is_old;
    if (!is_default) (connection += connection.empty() ? "" : ", ") += keep_alive_ ? "keep-alive" : "close";
    if (!connection.empty()) append_field(pending_, "Connection", connection);
    if (!is_dated) detail::http::append_date(pending_);
    pending_ += "\r\n";
    result_ = number;
  }

  void send_pending(std::size_t of_body) {
    const std::string block = std::exchange(pending_, {});
    timed(block.size(), [&] { return wire_.write(block), of_body; });
  }
  // Calls send(), which sends up to `size` bytes and returns how many of the body, within the time for that. All writes
  // together also have a limit. Otherwise a client that takes a block from time to time would hold its connection for
  // hours.
  template <class Send>
  void timed(std::size_t size, Send&& send) {
    const auto begun = steady_clock::now();
    std::chrono::nanoseconds time = limits_.write_time;
    if (limits_.least_rate > 0) {
      const std::chrono::duration<double> at_least_rate(static_cast<double>(bytes_sent_ + size) /
                                                        static_cast<double>(limits_.least_rate));
      const auto left = std::chrono::duration<double>(limits_.write_time) + at_least_rate - spent_;
      if (left < time) time = std::chrono::duration_cast<std::chrono::nanoseconds>(left);
    }
    wire_.tcp().writes_expire_at(detail::http::end_of(time, begun));
    bytes_sent_ += send();
    spent_ += steady_clock::now() - begun;
  }

  [[noreturn]] void fail(const boost::system::error_code& error, const char* part, std::chrono::nanoseconds time) {
    using code = boost::beast::http::error;
    body_.store(failed, std::memory_order_relaxed);  // flag
    const std::string the_part = std::string("the ") + part;
    if (error == boost::asio::error::timed_out) {
      char text[48];
      std::snprintf(text, sizeof text, " took longer than %g s", std::chrono::duration<double>(time).count());
      throw refusal(status::request_timeout, the_part + text);
    }
    if (error == code::end_of_stream || error == code::partial_message ||
        error.category() != boost::system::error_code(code::bad_version).category())
      wire::fail(error);
    if (asked_.method_string().empty()) is_head_ = parser_.get().method() == verb::head;
    const std::string why = ": " + error.message();
    if (error == code::body_limit)
      throw refusal(status::payload_too_large,
                    "the body is larger than " + std::to_string(limits_.body_size) + " bytes" + why);
    if (error == code::buffer_overflow)
      throw refusal(status::request_header_fields_too_large, "the extension of a chunk, or the trailer, has over " +
                                                                 std::to_string(buffer_.max_size()) + " bytes" + why);
    if (error == code::header_limit)
      throw refusal(status::request_header_fields_too_large,
                    "the header is larger than " + std::to_string(limits_.header_size) + " bytes" + why);
    throw refusal(status::bad_request, the_part + " is malformed" + why);
  }

  wire& wire_;
  boost::beast::flat_buffer& buffer_;
  const http::limits& limits_;
  const std::stop_token closing_;
  boost::beast::http::request_parser<boost::beast::http::buffer_body> parser_;  // its header is moved into asked_
  http::request asked_{verb::get, {}};
  const steady_clock::time_point begun_at_ = steady_clock::now();
  steady_clock::time_point body_deadline_{};
  std::unique_ptr<char[]> block_;         // for read_some
  std::atomic<body_state> body_{unread};  // State: written by the fiber that reads it
  bool keep_alive_ = false;               // false also until the header is read
  bool is_head_ = false;

  // The answer.
  unsigned result_ = 0;
  std::string pending_;                // what leaves with the next part
  std::optional<std::uint64_t> left_;  // of its Content-Length
  bool chunked_ = false, bodyless_ = false, ended_ = false, upgraded_ = false;
  std::uint64_t bytes_sent_ = 0;
  std::chrono::duration<double> spent_{};  // in writes
};

}  // namespace ulexite::http
