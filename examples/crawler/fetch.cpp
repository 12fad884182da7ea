#include "fetch.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/url/parse.hpp>

#include <cstdint>
#include <optional>
#include <system_error>

namespace http = boost::beast::http;

namespace {

constexpr std::uint64_t largest_body = 8 * 1024 * 1024;

// Beast reports a cancellation as one of its errors. Here it becomes the exception again that ends a fiber.
void check(const boost::system::error_code& error, const char* what) {
  if (!error) return;
  ulexite::this_fiber::check();
  throw std::system_error(error, what);
}

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

}  // namespace

answer fetch(const ulexite::net::endpoint& to, const std::string& url) {
  const auto parts = boost::urls::parse_uri(url).value();
  http::request<http::empty_body> question(http::verb::get, parts.encoded_target(), 11);
  question.set(http::field::host, parts.encoded_host_and_port());
  question.set(http::field::user_agent, "ulexite-crawler");
  question.keep_alive(false);

  auto connection = ulexite::net::tcp_stream::connect(to);
  ulexite::asio_stream stream(connection);
  boost::system::error_code error;
  http::write(stream, question, error);
  check(error, "sending the request");

  boost::beast::flat_buffer buffer(64 * 1024);  // the most: a chunk's extension and a trailer have no other limit
  std::optional<http::response_parser<http::string_body>> reading;
  do {  // until the answer itself comes, after those like 103 Early Hints
    reading.emplace();
    reading->body_limit(boost::none);  // because a file may be large; set below
    http::read_header(stream, buffer, *reading, error);
    check(error, "reading the answer");
  } while (reading->get().result_int() / 100 == 1);
  auto& parser = *reading;
  auto& got = parser.get();
  answer made{.status = got.result_int(),
              .type = text(got[http::field::content_type]),
              .location = text(got[http::field::location]),
              .body = {}};
  if (!made.may_have_links()) return made;
  if (parser.content_length().value_or(0) > largest_body)
    check(http::make_error_code(http::error::body_limit), "reading the answer");
  parser.body_limit(largest_body);  // of a body without a length
  http::read(stream, buffer, parser, error);
  check(error, "reading the answer");
  made.body = std::move(got.body());
  return made;
}
