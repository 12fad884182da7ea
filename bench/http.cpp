// HTTP keep-alive "Hello, World!" with Boost.Beast, one fiber per connection: http PORT THREADS

#include <ulexite.hpp>
#include <ulexite/interop/asio.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace {

namespace http = boost::beast::http;

// The answer is always the same, so it is made once, and written in one piece.
std::string answer(bool keep_alive) {
  http::response<http::string_body> response(http::status::ok, 11);
  response.set(http::field::content_type, "text/plain");
  response.keep_alive(keep_alive);
  response.body() = "Hello, World!";
  response.prepare_payload();
  std::ostringstream text;
  text << response;
  return text.str();
}

void serve(ulexite::net::tcp_stream tcp) {
  static const std::string go_on = answer(true), end = answer(false);
  ulexite::asio_stream stream(tcp);
  boost::beast::flat_buffer buffer;
  boost::system::error_code error;
  for (std::error_code failure; !failure;) {
    http::request<http::string_body> request;
    http::read(stream, buffer, request, error);
    if (error) return;
    tcp.write(request.keep_alive() ? go_on : end, failure);
    if (!request.keep_alive()) return;
  }
}

void accept_all(const std::string& port) {
  auto listener = ulexite::net::tcp_listener::listen(ulexite::net::endpoint::parse("127.0.0.1:" + port));
  for (;;) ulexite::spawn([stream = listener.accept()]() mutable { serve(std::move(stream)); }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PORT THREADS\n", argv[0]);
    return 2;
  }
  try {
    ulexite::runtime runtime({.threads = std::stoul(argv[2])});
    runtime.run(accept_all, argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "http: %s\n", e.what());
    return 1;
  }
  return 0;
}
