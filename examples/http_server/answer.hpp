#pragma once

#include "range.hpp"
#include "site.hpp"

#include <boost/beast/http.hpp>

#include <optional>
#include <string>

namespace http_server {

using request = boost::beast::http::request<boost::beast::http::string_body>;

// What is sent back: a header, and behind it either `text` or a part of `file`.
struct answer {
  boost::beast::http::response<boost::beast::http::empty_body> header;
  std::string text{};
  open_file file{};
  byte_range part{};  // of `file`
  bool head_only = false;
};

// The answer to a request. Its Connection says whether another may follow.
[[nodiscard]] answer make_answer(const request& asked, const site& files);

// The answer to what could not be read as a request. The connection ends with it.
[[nodiscard]] answer make_refusal(boost::beast::http::status status, const std::string& why);

// As in "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] std::string http_date(std::time_t time);

}  // namespace http_server
