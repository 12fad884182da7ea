#pragma once

#include "incoming.hpp"
#include "range.hpp"
#include "site.hpp"

#include <boost/beast/http.hpp>

#include <string>

namespace http_server {

using response_header = boost::beast::http::response<boost::beast::http::empty_body>;

// An answer: a header, and after it either `text` or a part of `file`.
struct answer {
  response_header header;
  std::string text{};
  open_file file{};
  byte_range part{};  // of `file`
  bool head_only = false;
};

// Makes a header with the common fields. Its Connection says whether another request may follow.
[[nodiscard]] response_header begin_header(boost::beast::http::status status, const request& asked);

[[nodiscard]] answer with_text(boost::beast::http::status status, const request& asked, std::string text,
                               const char* type = "text/plain; charset=utf-8");
// Makes an answer with a text that describes the error.
[[nodiscard]] answer with_error(boost::beast::http::status status, const request& asked, const std::string& why);
// `allowed` as in "GET, HEAD".
[[nodiscard]] answer not_allowed(const request& asked, const char* allowed);
// Makes the answer to an unreadable request, which may be HEAD. The connection ends with it.
[[nodiscard]] answer to_unread(boost::beast::http::status status, const std::string& why, bool head_only);

// The answer to a request for a file of the site.
[[nodiscard]] answer from_site(const incoming& asked, const site& files);

}  // namespace http_server
