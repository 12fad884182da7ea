#include "fetch.hpp"

#include <cstdint>

namespace http = ulexite::http;

namespace {

constexpr std::uint64_t largest_body = 8 * 1024 * 1024;

}  // namespace

answer fetch(http::client& by, const std::string& url) {
  http::reply got = by.open(url, http::request(http::verb::get));
  answer made{.status = got.header().result_int(),
              .type = std::string(got.header()[http::field::content_type]),
              .location = std::string(got.header()[http::field::location]),
              .body = {}};
  if (made.may_have_links()) made.body = got.read_all(largest_body);
  return made;
}
