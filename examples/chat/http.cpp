#include "http.hpp"

#include "../request_context.hpp"
#include "session.hpp"

#include <ulexite/interop/http_server.hpp>

#include <chrono>
#include <string_view>

namespace chat {
namespace {

namespace http = ulexite::http;
using namespace std::chrono_literals;

http::response with_page(const std::string& page) {
  http::response made(http::status::ok, page, "text/html; charset=utf-8");
  mark(made);
  made.set(http::field::cache_control, "no-cache");
  made.set(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:");
  return made;
}

http::response with_text(http::status status, const std::string& why) {
  http::response made(status, why + "\n");
  mark(made);
  return made;
}

http::response answer(const http::request& asked, const std::string& page) {
  if (asked.path() == "/ws") {
    http::response made = with_text(http::status::upgrade_required, "this is for websockets only");
    made.set(http::field::upgrade, "websocket");
    made.set(http::field::connection, "Upgrade");
    return made;
  }
  if (asked.path() != "/") return with_text(http::status::not_found, "there is / and /ws, nothing else");
  if (asked.method() == http::verb::get || asked.method() == http::verb::head) return with_page(page);
  http::response made = with_text(http::status::method_not_allowed, "only GET and HEAD work here");
  made.set(http::field::allow, "GET, HEAD");
  return made;
}

// Whether it has one, of 16 bytes in Base64: RFC 6455, 4.2.1. Beast accepts any text.
bool has_websocket_key(const http::request& asked) {
  const std::string_view key = http::view(asked[http::field::sec_websocket_key]);
  return asked.count(http::field::sec_websocket_key) == 1 && key.size() == 24 &&
         key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == 22 &&
         key.ends_with("==");
}

}  // namespace

void serve_connection(ulexite::net::tcp_stream& tcp, const std::stop_token& closing, const std::string& page,
                      rooms& rooms, const limits& limits, const examples::managed_service* life) {
  const examples::request_scope within;
  const auto handler = [&](http::exchange& now) {
    const http::request& asked = now.request();
    examples::begin_request([&](const char* name) { return http::value(asked, name); });
    now.make_last();
    now.read_body();
    const auto probe = life ? life->probe(http::view(asked.method_string()), asked.path()) : std::nullopt;
    if (probe) return now.send({static_cast<http::status>(probe->status), std::string(probe->text)});
    if (asked.path() != "/ws" || !boost::beast::websocket::is_upgrade(asked)) return now.send(answer(asked, page));
    if (!has_websocket_key(asked))
      throw http::refusal(http::status::bad_request, "Sec-WebSocket-Key must be 16 bytes in Base64");
    session(now.upgrade().tcp(), rooms, limits, closing).run(asked);
  };
  http::serve_connection(
      tcp, closing, handler,
      {.limits = {.idle_time = 10s, .body_time = 10s, .linger_time = 3s, .header_size = 8 * 1024, .body_size = 1024},
       .refuse = [](const http::exchange&, http::status code, const std::string& why) {
         return with_text(code, why);
       }});
}

}  // namespace chat
