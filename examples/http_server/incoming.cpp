#include "incoming.hpp"

#include "../expect_continue.hpp"
#include "../request_fault.hpp"
#include "refusal.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/core/string.hpp>

#include <cstdio>
#include <string>

namespace http_server {
namespace http = boost::beast::http;
namespace {

using boost::system::error_code;

std::string seconds(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

incoming::incoming(wire& from, boost::beast::flat_buffer& buffer, const limits& limits)
    : wire_(from), buffer_(buffer), limits_(limits) {
  parser_.header_limit(limits.header_size);
  parser_.body_limit(limits.body_size);
}

void incoming::read_header() {
  wire_.tcp().expires_after(limits_.header_time);
  error_code error;
  http::read_header(wire_, buffer_, parser_, error);
  if (error) fail(error, "header", limits_.header_time);
  if (!parser_.keep_alive()) make_last();  // the parser sees all lines of Connection, and the header only the first
  check_header();
}

void incoming::check_header() const {
  if (const auto fault = examples::fault_of(header())) throw refusal(fault->status, fault->why);
  const std::string expected = expectation();
  if (!expected.empty() && !boost::beast::iequals(expected, "100-continue"))
    throw refusal(http::status::expectation_failed, "cannot meet \"" + expected + "\"");
  if (header().method() == http::verb::unknown)
    throw refusal(http::status::not_implemented, "the method is \"" + std::string(header().method_string()) + "\"");
}

std::string_view incoming::method() const {
  if (target().empty()) return {};  // an unread one would read as <unknown>
  const auto text = header().method_string();
  return {text.data(), text.size()};
}

std::string_view incoming::target() const { return {header().target().data(), header().target().size()}; }

std::string incoming::field(http::field name) const {
  std::string joined;
  for (auto [line, end] = header().equal_range(name); line != end; ++line) {
    if (!joined.empty()) joined += ", ";
    joined.append(line->value().data(), line->value().size());
  }
  return joined;
}

bool incoming::body_held_back() const { return block_.empty() && examples::waits_to_continue(parser_); }

// HTTP/1.0 has none, and its client does not understand "100 Continue".
std::string incoming::expectation() const {
  return header().version() >= 11 ? field(http::field::expect) : std::string();
}

void incoming::begin_body() {
  body_deadline_ = std::chrono::steady_clock::now() + limits_.body_time;
  if (body_held_back()) {
    wire_.tcp().expires_after(limits_.write_time);
    wire_.write(examples::continue_now);
  }
  block_.resize(block_size);
  buffer_.reserve(block_size);  // otherwise Beast reads in pieces as small as the header's rest
}

std::string_view incoming::read_body() {
  if (parser_.is_done()) return {};
  if (block_.empty()) begin_body();
  wire_.tcp().expires_at(body_deadline_);
  auto& body = parser_.get().body();
  body.data = block_.data();
  body.size = block_.size();
  do {
    error_code error;
    http::read_some(wire_, buffer_, parser_, error);
    if (error && error != http::error::need_buffer) fail(error, "body", limits_.body_time);
  } while (body.size == block_.size() && !parser_.is_done());
  return {block_.data(), block_.size() - body.size};
}

void incoming::skip_body() {
  while (!read_body().empty()) {
  }
}

void incoming::fail(const error_code& error, const char* part, std::chrono::nanoseconds time) const {
  const std::string the_part = std::string("the ") + part;
  if (error == boost::asio::error::timed_out)
    throw refusal(http::status::request_timeout, the_part + " took longer than " + seconds(time));
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error.category() != error_code(http::error::bad_version).category())
    wire::fail(error);
  if (error == http::error::body_limit)
    throw refusal(http::status::payload_too_large,
                  "the body is larger than " + std::to_string(limits_.body_size) + " bytes");
  if (error == http::error::buffer_overflow)
    throw refusal(http::status::request_header_fields_too_large, "the extension of a chunk, or the trailer, has over " +
                                                                     std::to_string(buffer_.max_size()) + " bytes");
  if (error == http::error::header_limit)
    throw refusal(http::status::request_header_fields_too_large,
                  "the header is larger than " + std::to_string(limits_.header_size) + " bytes");
  throw refusal(http::status::bad_request, the_part + " is malformed: " + error.message());
}

}  // namespace http_server
