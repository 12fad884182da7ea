#include "session.hpp"

#include "../empty_lines.hpp"
#include "../expect_continue.hpp"
#include "../last_words.hpp"
#include "../request_fault.hpp"
#include "../write_answer.hpp"
#include "routes.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <spdlog/spdlog.h>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace redis_counter {
namespace http = boost::beast::http;
namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto patience = 30s;  // with a client: for its next request, and to take the answer

class session {
 public:
  session(ulexite::net::tcp_stream& client, service& shared) : tcp_(client), stream_(client), shared_(shared) {}

  void run() {
    while (const auto asked = read()) {
      spdlog::debug("request method={} target={}", view(asked->method_string()), view(asked->target()));
      response made = answer(*asked, shared_.all, shared_.limit);
      if (shared_.closing.stop_requested()) made.keep_alive(false);
      if (!send(made)) return;
      if (!made.keep_alive()) return examples::deliver_last_words(tcp_, 1s);
    }
  }

 private:
  static std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

  std::optional<request> read();
  void refuse(const error_code& error);
  void refuse(http::status status, const std::string& why);
  bool send(response& made);

  ulexite::net::tcp_stream& tcp_;
  ulexite::asio_stream stream_;
  service& shared_;
  bool head_only_ = false;                       // the last request is HEAD
  boost::beast::flat_buffer buffer_{64 * 1024};  // the most: a chunk's extension and a trailer have no other limit
};

// nullopt if there is none left.
std::optional<request> session::read() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(8 * 1024);
  parser.body_limit(4 * 1024);
  tcp_.expires_after(patience);
  error_code error;
  examples::await_request(stream_, buffer_, error);
  if (!error) http::read_header(stream_, buffer_, parser, error);
  head_only_ = parser.get().method() == http::verb::head;
  if (!error) {
    if (const auto fault = examples::fault_of(parser.get())) {
      refuse(fault->status, fault->why);
      return std::nullopt;
    }
    std::error_code none;  // a failure shows in the read
    if (examples::waits_to_continue(parser))
      tcp_.write(examples::continue_now.data(), examples::continue_now.size(), none);
    http::read(stream_, buffer_, parser, error);
  }
  if (error) {
    refuse(error);
    return std::nullopt;
  }
  // The parser sees all lines of Connection, and the request only the first.
  if (!parser.keep_alive()) parser.get().keep_alive(false);
  return parser.release();
}

// Answers the client's wrong request, unless the connection failed.
void session::refuse(const error_code& error) {
  if (error.category() != make_error_code(http::error::bad_version).category()) return;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return;
  http::status status = http::status::bad_request;
  if (error == http::error::body_limit) status = http::status::payload_too_large;
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    status = http::status::request_header_fields_too_large;
  refuse(status, "the request cannot be read: " + error.message());
}

void session::refuse(http::status status, const std::string& why) {
  response made = refusal(status, why);
  if (send(made)) examples::deliver_last_words(tcp_, 1s);
}

bool session::send(response& made) {
  tcp_.expires_after(patience);
  error_code error;
  examples::write_answer(stream_, made, head_only_, error);
  if (error) return false;
  shared_.requests.fetch_add(1, std::memory_order_relaxed);  // a counter
  return true;
}

}  // namespace

void serve(ulexite::net::tcp_stream& client, service& shared) { session(client, shared).run(); }

}  // namespace redis_counter
