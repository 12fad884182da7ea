#include "answer.hpp"

#include "condition.hpp"

#include <ctime>
#include <string_view>
#include <utility>

namespace http_server {
namespace http = boost::beast::http;
namespace {

// The redirection stays on this host, also for a target like "//elsewhere".
answer moved(const incoming& asked) {
  std::string path(asked.target());
  const auto query = path.find_first_of("?#");
  const std::string rest = query == path.npos ? "" : path.substr(query);
  path = path.substr(0, query);
  if (const auto name = path.find_first_not_of('/'); path.starts_with('/') && name > 1) path.erase(0, name - 1);
  answer made = with_error(http::status::moved_permanently, asked.header(), "this is a directory");
  made.header.set(http::field::location, path + "/" + rest);
  return made;
}

answer unsatisfiable(const incoming& asked, const open_file& file) {
  answer made = with_error(http::status::range_not_satisfiable, asked.header(), "the file ends before that");
  made.header.set(http::field::content_range, "bytes */" + std::to_string(file.size()));
  return made;
}

void describe_file(response_header& header, const open_file& file) {
  header.set(http::field::last_modified, http_date(file.modified().tv_sec));
  header.set(http::field::etag, entity_tag(file));
}

answer not_modified(const incoming& asked, const open_file& file) {
  answer made{.header = begin_header(http::status::not_modified, asked.header()), .head_only = true};
  describe_file(made.header, file);
  return made;
}

std::string content_range(const byte_range& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.offset) + "-" + std::to_string(part.offset + part.size - 1) + "/" +
         std::to_string(size);
}

// The order of the conditions is that of RFC 9110, 13.2.2.
answer with_file(const incoming& asked, lookup&& result) {
  if (!preconditions_hold(asked, result.file))
    return with_error(http::status::precondition_failed, asked.header(), "the file has another state");
  if (client_has(asked, result.file)) return not_modified(asked, result.file);
  const bool head_only = asked.header().method() == http::verb::head;
  const range_request wanted = head_only || !range_applies(asked, result.file)  // a HEAD has no ranges
                                   ? range_request()
                                   : parse_range(asked.field(http::field::range), result.file.size());
  if (wanted.kind == range_request::unsatisfiable) return unsatisfiable(asked, result.file);
  const bool whole = wanted.kind == range_request::whole;
  answer made{.header = begin_header(whole ? http::status::ok : http::status::partial_content, asked.header()),
              .part = whole ? byte_range{0, result.file.size()} : wanted.range,
              .head_only = head_only};
  if (!whole) made.header.set(http::field::content_range, content_range(made.part, result.file.size()));
  made.header.set(http::field::content_type, result.type);
  made.header.set(http::field::accept_ranges, "bytes");
  describe_file(made.header, result.file);
  made.header.content_length(made.part.size);
  made.file = std::move(result.file);
  return made;
}

}  // namespace

response_header begin_header(http::status status, const request& asked) {
  response_header made(status, asked.version());
  made.set(http::field::server, "ulexite-http");
  made.set(http::field::date, http_date(::time(nullptr)));
  made.keep_alive(asked.keep_alive());
  return made;
}

answer with_text(http::status status, const request& asked, std::string text, const char* type) {
  answer made{.header = begin_header(status, asked), .text = std::move(text)};
  made.header.set(http::field::content_type, type);
  made.header.content_length(made.text.size());
  made.head_only = asked.method() == http::verb::head;
  return made;
}

answer with_error(http::status status, const request& asked, const std::string& why) {
  return with_text(status, asked,
                   std::to_string(static_cast<unsigned>(status)) + " " + std::string(http::obsolete_reason(status)) +
                       ": " + why + "\n");
}

answer not_allowed(const request& asked, const char* allowed) {
  answer made =
      with_error(http::status::method_not_allowed, asked, std::string("only ") + allowed + " work for this target");
  made.header.set(http::field::allow, allowed);
  return made;
}

answer to_unread(http::status status, const std::string& why, bool head_only) {
  request unread;
  unread.version(11);
  unread.keep_alive(false);
  answer made = with_error(status, unread, why);
  made.head_only = head_only;
  return made;
}

answer from_site(const incoming& asked, const site& files) {
  if (asked.header().method() != http::verb::get && asked.header().method() != http::verb::head)
    return not_allowed(asked.header(), "GET, HEAD");
  lookup result = files.find(asked.target());
  switch (result.outcome) {
    case lookup::found: return with_file(asked, std::move(result));
    case lookup::moved: return moved(asked);
    case lookup::malformed: return with_error(http::status::bad_request, asked.header(), "the target is malformed");
    case lookup::forbidden: return with_error(http::status::forbidden, asked.header(), "this file may not be read");
    case lookup::unavailable:
      return with_error(http::status::service_unavailable, asked.header(), "this file cannot be opened now");
    case lookup::missing: break;
  }
  return with_error(http::status::not_found, asked.header(), "there is no such file");
}

}  // namespace http_server
