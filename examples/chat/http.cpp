#include "http.hpp"

#include "../empty_lines.hpp"
#include "../last_words.hpp"
#include "../request_fault.hpp"
#include "session.hpp"

#include <chrono>
#include <string_view>

namespace chat {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using namespace std::chrono_literals;

using response = http::response<http::string_body>;

response with_text(http::status status, const std::string& why) {
  response made(status, 11);
  made.set(http::field::content_type, "text/plain; charset=utf-8");
  made.body() = why + "\n";
  return made;
}

response with_page(const std::string& page) {
  response made(http::status::ok, 11);
  made.set(http::field::content_type, "text/html; charset=utf-8");
  made.set(http::field::cache_control, "no-cache");
  made.set(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:");
  made.body() = page;
  return made;
}

response answer(const request& asked, std::string_view path, const std::string& page) {
  if (path == "/ws") {
    response made = with_text(http::status::upgrade_required, "this is for websockets only");
    made.set(http::field::upgrade, "websocket");
    made.set(http::field::connection, "Upgrade");
    return made;
  }
  if (path != "/") return with_text(http::status::not_found, "there is / and /ws, nothing else");
  if (asked.method() == http::verb::get || asked.method() == http::verb::head) return with_page(page);
  response made = with_text(http::status::method_not_allowed, "only GET and HEAD work here");
  made.set(http::field::allow, "GET, HEAD");
  return made;
}

// Whether it has one, of 16 bytes in Base64: RFC 6455, 4.2.1. Beast accepts any text.
bool has_websocket_key(const request& asked) {
  const auto field = asked[http::field::sec_websocket_key];
  const std::string_view key(field.data(), field.size());
  return asked.count(http::field::sec_websocket_key) == 1 && key.size() == 24 &&
         key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == 22 &&
         key.ends_with("==");
}

void send(ulexite::net::tcp_stream& tcp, response&& made, bool head_only) {
  made.set(http::field::server, "ulexite-chat");
  made.keep_alive(false);
  made.prepare_payload();
  if (head_only) made.body().clear();
  ulexite::asio_stream stream(tcp);
  http::response_serializer<http::string_body> serializer(made);
  error_code error;
  if (head_only)
    http::write_header(stream, serializer, error);
  else
    http::write(stream, serializer, error);
  examples::deliver_last_words(tcp, 1s);
}

// Answers a wrong request, but not if the client has only closed the connection.
void refuse(ulexite::net::tcp_stream& tcp, const error_code& error, bool head_only) {
  if (error.category() != make_error_code(http::error::bad_version).category()) return;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return;
  send(tcp, with_text(http::status::bad_request, error.message()), head_only);
}

}  // namespace

void serve_connection(ulexite::net::tcp_stream& tcp, const std::stop_token& closing, const std::string& page,
                      rooms& rooms, const limits& limits) {
  request asked;
  {
    const std::stop_callback end_reads(closing, [&tcp]() noexcept { tcp.shutdown_read(); });
    tcp.expires_after(10s);
    ulexite::asio_stream stream(tcp);
    boost::beast::flat_buffer buffer(64 * 1024);  // the most: a chunk's extension and a trailer have no other limit
    http::request_parser<http::string_body> parser;
    parser.body_limit(1024);
    error_code error;
    examples::await_request(stream, buffer, error);
    if (!error) http::read(stream, buffer, parser, error);
    if (!error && buffer.size() > 0) error = http::error::unexpected_body;  // bytes before our answer
    const bool head_only = parser.get().method() == http::verb::head;
    if (error) return refuse(tcp, error, head_only);
    if (const auto fault = examples::fault_of(parser.get()))
      return send(tcp, with_text(fault->status, fault->why), head_only);
    asked = parser.release();
  }
  const std::string_view target(asked.target().data(), asked.target().size());
  const std::string_view path = target.substr(0, target.find('?'));
  const bool is_upgrade = path == "/ws" && boost::beast::websocket::is_upgrade(asked);
  if (is_upgrade && !has_websocket_key(asked))
    return send(tcp, with_text(http::status::bad_request, "Sec-WebSocket-Key must be 16 bytes in Base64"), false);
  if (is_upgrade) return session(tcp, rooms, limits, closing).run(asked);
  send(tcp, answer(asked, path, page), asked.method() == http::verb::head);
}

}  // namespace chat
