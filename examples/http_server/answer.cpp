#include "answer.hpp"

#include "../request_context.hpp"
#include "condition.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace http_server {
namespace {

// The redirection stays on this host, also for a target like "//elsewhere".
http::response moved(const http::request& asked) {
  std::string path(http::view(asked.target()));
  const auto query = path.find_first_of("?#");
  const std::string rest = query == path.npos ? "" : path.substr(query);
  path = path.substr(0, query);
  if (const auto name = path.find_first_not_of('/'); path.starts_with('/') && name > 1) path.erase(0, name - 1);
  http::response made = with_error(http::status::moved_permanently, asked, "this is a directory");
  made.set(http::field::location, path + "/" + rest);
  return made;
}

http::response unsatisfiable(const http::request& asked, const open_file& file) {
  http::response made = with_error(http::status::range_not_satisfiable, asked, "the file ends before that");
  made.set(http::field::content_range, "bytes */" + std::to_string(file.size()));
  return made;
}

void describe_file(http::response& header, const open_file& file) {
  header.set(http::field::last_modified, http::date(file.modified().tv_sec));
  header.set(http::field::etag, entity_tag(file));
}

http::response not_modified(const http::request& asked, const open_file& file) {
  http::response made = begin_header(http::status::not_modified, asked);
  describe_file(made, file);
  return made;
}

std::string content_range(const byte_range& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.offset) + "-" + std::to_string(part.offset + part.size - 1) + "/" +
         std::to_string(size);
}

// The order of the conditions is that of RFC 9110, 13.2.2.
answer with_file(const http::request& asked, lookup&& result) {
  if (!preconditions_hold(asked, result.file))
    return {with_error(http::status::precondition_failed, asked, "the file has another state")};
  if (client_has(asked, result.file)) return {not_modified(asked, result.file)};
  const range_request wanted =
      asked.method() == http::verb::head || !range_applies(asked, result.file)  // a HEAD has no ranges
          ? range_request()
          : parse_range(value(asked, http::field::range), result.file.size());
  if (wanted.kind == range_request::unsatisfiable) return {unsatisfiable(asked, result.file)};
  const bool whole = wanted.kind == range_request::whole;
  answer made{.header = begin_header(whole ? http::status::ok : http::status::partial_content, asked),
              .part = whole ? byte_range{0, result.file.size()} : wanted.range};
  if (!whole) made.header.set(http::field::content_range, content_range(made.part, result.file.size()));
  made.header.set(http::field::content_type, {result.type.data(), result.type.size()});
  made.header.set(http::field::accept_ranges, "bytes");
  describe_file(made.header, result.file);
  made.file = std::move(result.file);
  return made;
}

}  // namespace

http::response begin_header(http::status status, const http::request& asked) {
  http::response made(status, "", "");
  made.version(asked.version());
  made.set(http::field::server, "ulexite-http");
  if (const auto& now = examples::current_request()) made.set("X-Request-Id", now->request_id);
  return made;
}

http::response with_text(http::status status, const http::request& asked, std::string text, const char* type) {
  http::response made = begin_header(status, asked);
  made.set(http::field::content_type, type);
  made.body() = std::move(text);
  return made;
}

http::response with_error(http::status status, const http::request& asked, const std::string& why) {
  return with_text(status, asked,
                   std::to_string(static_cast<unsigned>(status)) + " " +
                       std::string(boost::beast::http::obsolete_reason(status)) + ": " + why + "\n");
}

http::response not_allowed(const http::request& asked, const char* allowed) {
  http::response made =
      with_error(http::status::method_not_allowed, asked, std::string("only ") + allowed + " work for this target");
  made.set(http::field::allow, allowed);
  return made;
}

answer from_site(const http::request& asked, const site& files) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) return {not_allowed(asked, "GET, HEAD")};
  lookup result = files.find(http::view(asked.target()));
  const auto error = [&](http::status status, const char* why) { return answer{with_error(status, asked, why)}; };
  switch (result.outcome) {
    case lookup::found: return with_file(asked, std::move(result));
    case lookup::moved: return {moved(asked)};
    case lookup::malformed: return error(http::status::bad_request, "the target is malformed");
    case lookup::forbidden: return error(http::status::forbidden, "this file may not be read");
    case lookup::unavailable: return error(http::status::service_unavailable, "this file cannot be opened now");
    case lookup::missing: break;
  }
  return error(http::status::not_found, "there is no such file");
}

// A small file goes in one piece with the header, another as the system sends files, if it can.
void send(http::exchange& to, answer made) {
  constexpr std::uint64_t small = 16 * 1024, block_size = 64 * 1024;
  auto [at, left] = made.part;
  if (left == 0) return to.send(made.header);
  to.begin(made.header, left);
  if (to.request().method() == http::verb::head) return;
  if (left > small && to.sends_files()) return to.send_file(made.file.native_handle(), at, left);
  std::string block;
  while (left > 0) {
    block.resize(static_cast<std::size_t>(std::min(left, block_size)));
    block.resize(made.file.read_at(at, block.data(), block.size()));
    if (block.empty()) throw std::runtime_error("a file became shorter while it was sent");
    to.write(block);
    at += block.size();
    left -= block.size();
  }
}

}  // namespace http_server
