// Part 4: HTTP by Boost.Beast, which was written for Asio's streams and works on Ulexite's. There are no callbacks:
// where Beast would block a thread, the fiber waits.

#include "check.hpp"
#include "part.hpp"
#include "progress.hpp"
#include "server.hpp"
#include "text.hpp"

#include <ulexite/interop/http.hpp>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <string>

namespace tour {
namespace {

namespace http = ulexite::http;
using ulexite::net::endpoint;
using ulexite::net::tcp_stream;

constexpr int requests_of_a_client = 25;
constexpr std::string_view path = "/square/";

// Answers /square/12 with 144, and every other request with 404.
http::response answer_to(const http::request& asked) {
  const std::string_view target = asked.path();
  std::uint32_t number = 0;
  if (!target.starts_with(path)) return {404U, ""};
  const char* const end = target.data() + target.size();
  const auto parsed = std::from_chars(target.data() + path.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {404U, ""};
  return {200U, std::to_string(std::uint64_t{number} * number)};
}

// The client's side: its last request asks for a missing page, and ends the connection.
void visit(const endpoint& server, std::size_t client, progress& line) {
  http::client visitor;  // keeps its connection from one request to the next
  const std::string url = "http://" + server.str();
  for (int i = 1; i < requests_of_a_client; ++i) {
    const std::uint64_t number = client * requests_of_a_client + static_cast<std::uint64_t>(i);
    const http::response answer = visitor.get(url + std::string(path) + std::to_string(number));
    check_equal("status", answer.result_int(), 200U);
    check_equal("square of " + std::to_string(number), answer.body(), std::to_string(number * number));
    check_equal("the connection stays open", visitor.idle_connections(), std::size_t{1});
    line.add();
  }
  http::request last;
  last.keep_alive(false);
  check_equal("status of what is not there", visitor.send(url, last).result_int(), 404U);
  check_equal("the connection stays open", visitor.idle_connections(), std::size_t{0});
  line.add();
}

}  // namespace

result serve_http(ulexite::runtime& runtime, std::size_t wanted) {
  const std::size_t clients = possible_clients(wanted);
  const std::uint64_t requests = clients * requests_of_a_client;
  progress line(runtime, "4/4 HTTP", "requests", requests);
  std::atomic<std::uint64_t> served{0};
  const stopwatch time;
  runtime.run([&] {
    serve_clients(
        clients,
        [&](tcp_stream connection) {
          http::serve_connection(connection, std::stop_token(), answer_to,
                                 {.on_end = [&](const http::exchange&) { ++served; }});
        },
        [&](const endpoint& server, std::size_t number) { visit(server, number, line); });
  });
  const double seconds = time.seconds();
  check_equal("requests answered", line.count(), requests);
  check_equal("requests served", served.load(), requests);
  return {.done = grouped(clients) + " clients at once, " + grouped(requests) + " requests by keep-alive connections",
          .check = "each status and body",
          .seconds = seconds,
          .rate = rate(static_cast<double>(requests), seconds, "requests"),
          .details = told_if_fewer(clients, wanted)};
}

}  // namespace tour
