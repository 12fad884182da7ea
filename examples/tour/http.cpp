// Part 4: HTTP by Boost.Beast, which was written for Asio's streams and works on Ulexite's. There are no callbacks:
// where Beast would block a thread, the fiber waits.

#include "check.hpp"
#include "part.hpp"
#include "progress.hpp"
#include "server.hpp"
#include "text.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <ulexite/interop/asio.hpp>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <string>

namespace tour {
namespace {

namespace http = boost::beast::http;
using ulexite::net::endpoint;
using ulexite::net::tcp_stream;
using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;

constexpr int requests_of_a_client = 25;
constexpr std::string_view path = "/square/";

// Answers GET /square/12 with 144, and every other request with 404.
response answer_to(const request& asked) {
  const std::string_view target(asked.target().data(), asked.target().size());
  response answer(http::status::not_found, asked.version());
  std::uint32_t number = 0;
  if (target.starts_with(path)) {
    const char* const end = target.data() + target.size();
    const auto parsed = std::from_chars(target.data() + path.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) answer.result(http::status::ok);
  }
  if (answer.result() == http::status::ok) answer.body() = std::to_string(std::uint64_t{number} * number);
  answer.set(http::field::content_type, "text/plain");
  answer.keep_alive(asked.keep_alive());
  answer.prepare_payload();
  return answer;
}

// The server's side of a connection: one request after the other, as long as the client keeps it.
void serve(tcp_stream connection, std::atomic<std::uint64_t>& served) {
  ulexite::asio_stream stream(connection);      // refers to the connection, in the form that Beast needs
  boost::beast::flat_buffer buffer(64 * 1024);  // the most that it may hold
  for (bool more = true; more; ++served) {
    request asked;
    boost::system::error_code error;
    http::read(stream, buffer, asked, error);
    if (error == http::error::end_of_stream) return;
    if (error) throw boost::system::system_error(error, "reading a request");
    const response answer = answer_to(asked);
    http::write(stream, answer);
    more = answer.keep_alive();
  }
}

response ask(ulexite::asio_stream& stream, boost::beast::flat_buffer& buffer, const std::string& target, bool last) {
  request question(http::verb::get, target, 11);
  question.set(http::field::host, "localhost");
  question.keep_alive(!last);
  http::write(stream, question);
  response answer;
  http::read(stream, buffer, answer);
  check_equal("the connection stays open", answer.keep_alive(), !last);
  return answer;
}

// The client's side: its last request asks for a missing page, and ends the connection.
void visit(const endpoint& server, std::size_t client, progress& line) {
  tcp_stream connection = tcp_stream::connect(server);
  ulexite::asio_stream stream(connection);
  boost::beast::flat_buffer buffer(64 * 1024);  // the most that it may hold
  for (int i = 1; i < requests_of_a_client; ++i) {
    const std::uint64_t number = client * requests_of_a_client + static_cast<std::uint64_t>(i);
    const response answer = ask(stream, buffer, std::string(path) + std::to_string(number), false);
    check_equal("status", answer.result_int(), 200U);
    check_equal("square of " + std::to_string(number), answer.body(), std::to_string(number * number));
    line.add();
  }
  check_equal("status of what is not there", ask(stream, buffer, "/", true).result_int(), 404U);
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
        clients, [&](tcp_stream stream) { serve(std::move(stream), served); },
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
