#include "session.hpp"

#include "../request_context.hpp"
#include "answer.hpp"
#include "respond.hpp"

#include <ulexite/interop/http_server.hpp>
#include <ulexite/interop/http_tls.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace http_server {
namespace {

std::string peer_of(const ulexite::net::tcp_stream& tcp) try {
  return tcp.remote_endpoint().str();
} catch (const std::system_error&) {
  return "-";  // it has closed already
}

void answer_one(http::exchange& now, const service& shared) {
  const http::request& asked = now.request();
  examples::begin_request([&](const char* name) { return value(asked, name); });
  if (shared.life.is_draining()) now.make_last();
  const auto probe = shared.life.probe(http::view(asked.method_string()), http::view(asked.target()));
  if (!probe) return respond(now, shared.files);
  now.send(with_text(boost::beast::http::int_to_status(probe->status), std::string(probe->text)));
}

void note_end(const http::exchange& of, const std::string& peer, service& shared) {
  if (of.result_int() != 0) shared.requests.fetch_add(1, std::memory_order_relaxed);  // a counter
  if (shared.log.is_on()) {
    const http::request& asked = of.request();
    const auto duration = ulexite::steady_clock::now() - of.begun_at();
    shared.log.write({.peer = peer,
                      .method = http::view(asked.method_string()),
                      .target = http::view(asked.target()),
                      .user_agent = value(asked, http::field::user_agent),
                      .status = of.result_int(),
                      .bytes = of.bytes_sent(),
                      .duration = std::chrono::duration_cast<std::chrono::microseconds>(duration)});
  }
  examples::current_request() = nullptr;
}

}  // namespace

ulexite::task<> serve(ulexite::net::tcp_stream& tcp, std::stop_token closing, service& shared) {
  shared.connections.fetch_add(1, std::memory_order_relaxed);  // a counter
  const auto with = shared.current.get();
  const std::string peer = shared.log.is_on() ? peer_of(tcp) : "";
  const examples::request_scope within;
  http::server_options options{
      .limits = with->bounds,
      .wire = with->tls ? http::over_tls(*with->tls) : http::wire_maker(),
      .refuse = [](const http::exchange&, http::status code, const std::string& why) { return with_error(code, why); },
      .on_end = [&](const http::exchange& of) { note_end(of, peer, shared); }};
  co_await http::co_serve_connection(
      tcp, std::move(closing), [&](http::exchange& now) { answer_one(now, shared); }, std::move(options));
}

}  // namespace http_server
