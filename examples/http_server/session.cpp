#include "session.hpp"

#include "answer.hpp"

#include <ulexite/interop/asio.hpp>

#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace http_server {
namespace http = boost::beast::http;
namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

class session {
 public:
  session(ulexite::net::tcp_stream& stream, const site& files, const limits& limits, connections& all)
      : tcp_(stream), stream_(stream), files_(files), limits_(limits), all_(all), entry_(all, stream) {}

  void run() {
    while (serve_one()) {
    }
  }

 private:
  bool serve_one();
  bool await_request();
  bool read_request(request& asked);
  void refuse(const error_code& error);
  bool send(answer& made);
  void linger();

  ulexite::net::tcp_stream& tcp_;
  ulexite::asio_stream stream_;
  const site& files_;
  const limits& limits_;
  connections& all_;
  connections::entry entry_;
  boost::beast::flat_buffer buffer_;
};

// True: another request may follow.
bool session::serve_one() {
  request asked;
  if (!await_request() || !read_request(asked)) return false;
  answer made = make_answer(asked, files_);
  if (all_.stopping()) made.header.keep_alive(false);
  if (!send(made)) return false;
  all_.requests.fetch_add(1, std::memory_order_relaxed);  // a counter
  if (made.header.keep_alive()) return true;
  linger();
  return false;
}

// Waits, idle, for the first bytes of a request. They may have come with the last one.
bool session::await_request() {
  tcp_.expires_after(limits_.idle);
  if (buffer_.size() > 0) {
    entry_.begin_request();
    return true;
  }
  if (!entry_.begin_idle()) return false;
  const auto room = buffer_.prepare(4096);
  std::error_code error;
  const std::size_t got = tcp_.read_some(room.data(), room.size(), error);
  buffer_.commit(got);
  entry_.begin_request();
  return got > 0;
}

bool session::read_request(request& asked) {
  http::request_parser<http::string_body> parser;
  parser.body_limit(limits_.body_size);
  parser.header_limit(limits_.header_size);
  error_code error;
  http::read_header(stream_, buffer_, parser, error);
  if (!error && parser.get()[http::field::expect] == "100-continue") {
    http::response<http::empty_body> go_on(http::status::continue_, parser.get().version());
    http::write(stream_, go_on, error);
  }
  if (!error) http::read(stream_, buffer_, parser, error);
  if (error) {
    refuse(error);
    return false;
  }
  asked = parser.release();
  return true;
}

// Tells the client what was wrong with its request, unless it is the connection that failed.
void session::refuse(const error_code& error) {
  if (error.category() != make_error_code(http::error::bad_version).category()) return;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return;
  answer made = error == http::error::body_limit
                    ? make_refusal(http::status::payload_too_large, "the body is too large")
                : error == http::error::header_limit || error == http::error::buffer_overflow
                    ? make_refusal(http::status::request_header_fields_too_large, "the header is too large")
                    : make_refusal(http::status::bad_request, error.message());
  if (!send(made)) return;
  all_.requests.fetch_add(1, std::memory_order_relaxed);  // a counter
  linger();
}

// The header as bytes.
std::string header_of(answer& made) {
  std::string bytes;
  http::serializer<false, http::empty_body> serializer(made.header);
  error_code error;
  while (!error && !serializer.is_header_done()) {
    serializer.next(error, [&](error_code&, const auto& buffers) {
      bytes += boost::beast::buffers_to_string(buffers);
      serializer.consume(boost::beast::buffer_bytes(buffers));
    });
  }
  return bytes;
}

// The first block goes with the header. The file may shrink meanwhile: then the promise of the header cannot be kept,
// and the connection must end.
bool session::send(answer& made) {
  constexpr std::size_t block_size = 64 * 1024;
  std::string block = header_of(made);
  if (!made.head_only) block += made.text;
  std::uint64_t left = made.head_only ? 0 : made.part.size;
  std::uint64_t offset = made.part.offset;
  for (;;) {
    const std::size_t before = block.size();
    block.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(left, block_size)));
    const std::size_t got = made.file.read_at(offset, block.data() + before, block.size() - before);
    block.resize(before + got);
    if (got == 0 && left > 0) return false;
    tcp_.expires_after(limits_.progress);
    std::error_code failure;
    tcp_.write(block, failure);
    if (failure) return false;
    offset += got;
    left -= got;
    if (left == 0) return true;
    block.clear();
  }
}

// A close with unread input resets the connection, and the client would lose the answer: so its input is read for a
// moment.
void session::linger() {
  std::error_code error;
  tcp_.shutdown_write(error);
  tcp_.expires_after(1s);
  std::array<char, 4096> waste;
  while (!error && tcp_.read_some(waste.data(), waste.size(), error) > 0) {
  }
}

}  // namespace

void serve(ulexite::net::tcp_stream stream, const site& files, const limits& limits, connections& all) try {
  all.accepted.fetch_add(1, std::memory_order_relaxed);  // a counter
  session(stream, files, limits, all).run();
} catch (const std::system_error& failure) {
  std::fprintf(stderr, "http_server: a connection was given up: %s\n", failure.what());
}

}  // namespace http_server
