#include "answer.hpp"

#include <time.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace http_server {
namespace http = boost::beast::http;
namespace {

answer begin(http::status status, unsigned version, bool keep_alive) {
  answer made{.header = http::response<http::empty_body>(status, version)};
  made.header.set(http::field::server, "ulexite-http");
  made.header.set(http::field::date, http_date(::time(nullptr)));
  made.header.keep_alive(keep_alive);
  return made;
}

answer with_text(http::status status, const request& asked, const std::string& why) {
  answer made = begin(status, asked.version(), asked.keep_alive());
  made.text = std::to_string(static_cast<unsigned>(status)) + " " + std::string(http::obsolete_reason(status)) + ": " +
              why + "\n";
  made.header.set(http::field::content_type, "text/plain; charset=utf-8");
  made.header.content_length(made.text.size());
  made.head_only = asked.method() == http::verb::head;
  return made;
}

answer not_allowed(const request& asked) {
  answer made = with_text(http::status::method_not_allowed, asked, "only GET and HEAD work here");
  made.header.set(http::field::allow, "GET, HEAD");
  return made;
}

// The redirection stays on this host, also for a target like "//elsewhere".
answer moved(const request& asked) {
  std::string path(asked.target());
  const auto query = path.find_first_of("?#");
  const std::string rest = query == path.npos ? "" : path.substr(query);
  path = path.substr(0, query);
  if (const auto name = path.find_first_not_of('/'); path.starts_with('/') && name > 1) path.erase(0, name - 1);
  answer made = with_text(http::status::moved_permanently, asked, "this is a directory");
  made.header.set(http::field::location, path + "/" + rest);
  return made;
}

answer unsatisfiable(const request& asked, const open_file& file) {
  answer made = with_text(http::status::range_not_satisfiable, asked, "the file ends before that");
  made.header.set(http::field::content_range, "bytes */" + std::to_string(file.size()));
  return made;
}

answer not_modified(const request& asked, const std::string& modified) {
  answer made = begin(http::status::not_modified, asked.version(), asked.keep_alive());
  made.header.set(http::field::last_modified, modified);
  made.head_only = true;
  return made;
}

std::string content_range(const byte_range& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.offset) + "-" + std::to_string(part.offset + part.size - 1) + "/" +
         std::to_string(size);
}

// A HEAD has no ranges, and a range of another version of the file (If-Range) is of no use.
range_request wanted_range(const request& asked, const open_file& file, const std::string& modified) {
  if (asked.method() != http::verb::get) return {};
  const auto header = asked.find(http::field::range);
  if (header == asked.end()) return {};
  const auto condition = asked.find(http::field::if_range);
  if (condition != asked.end() && condition->value() != modified) return {};
  return parse_range(std::string_view(header->value().data(), header->value().size()), file.size());
}

// A client that has the file sends back our own Last-Modified.
bool has_it(const request& asked, const std::string& modified) {
  const auto since = asked.find(http::field::if_modified_since);
  return since != asked.end() && since->value() == modified && asked.find(http::field::if_none_match) == asked.end();
}

answer with_file(const request& asked, lookup&& result) {
  const std::string modified = http_date(result.file.modified());
  if (has_it(asked, modified)) return not_modified(asked, modified);
  const range_request wanted = wanted_range(asked, result.file, modified);
  if (wanted.kind == range_request::unsatisfiable) return unsatisfiable(asked, result.file);
  const bool whole = wanted.kind == range_request::whole;
  answer made = begin(whole ? http::status::ok : http::status::partial_content, asked.version(), asked.keep_alive());
  made.part = whole ? byte_range{0, result.file.size()} : wanted.range;
  if (!whole) made.header.set(http::field::content_range, content_range(made.part, result.file.size()));
  made.header.set(http::field::content_type, result.type);
  made.header.set(http::field::accept_ranges, "bytes");
  made.header.set(http::field::last_modified, modified);
  made.header.content_length(made.part.size);
  made.head_only = asked.method() == http::verb::head;
  made.file = std::move(result.file);
  return made;
}

}  // namespace

answer make_answer(const request& asked, const site& files) {
  if (asked.version() >= 11 && asked.find(http::field::host) == asked.end())
    return make_refusal(http::status::bad_request, "the Host is missing");
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) return not_allowed(asked);
  lookup result = files.find(std::string_view(asked.target().data(), asked.target().size()));
  switch (result.outcome) {
    case lookup::found: return with_file(asked, std::move(result));
    case lookup::moved: return moved(asked);
    case lookup::malformed: return with_text(http::status::bad_request, asked, "the target is malformed");
    case lookup::forbidden: return with_text(http::status::forbidden, asked, "this file may not be read");
    case lookup::missing: break;
  }
  return with_text(http::status::not_found, asked, "there is no such file");
}

answer make_refusal(http::status status, const std::string& why) {
  request unread;
  unread.version(11);
  unread.keep_alive(false);
  return with_text(status, unread, why);
}

std::string http_date(std::time_t time) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday,
                months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text;
}

}  // namespace http_server
