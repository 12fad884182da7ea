#include "answer.hpp"

#include "../request_context.hpp"
#include "condition.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
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
  http::response made = with_error(http::status::moved_permanently, "this is a directory");
  made.set(http::field::location, path + "/" + rest);
  return made;
}

http::response unsatisfiable(const open_file& file) {
  http::response made = with_error(http::status::range_not_satisfiable, "the file ends before that");
  made.set(http::field::content_range, "bytes */" + std::to_string(file.size()));
  return made;
}

// Calls set(name, value) for the fields of every answer.
template <class Set>
void set_common_fields(Set&& set) {
  set("Server", "ulexite-http");
  if (const auto& now = examples::current_request()) set("X-Request-Id", now->request_id);
}

// Begins an answer about a file.
answer begin_file_answer(http::status code, const open_file& file) {
  answer made{.code = code};
  made.fields.reserve(256);
  set_common_fields([&](const char* name, std::string_view value) { http::append_field(made.fields, name, value); });
  http::append_field(made.fields, "Last-Modified",
                     http::date(std::chrono::sys_seconds(std::chrono::seconds(file.modified().tv_sec))));
  http::append_field(made.fields, "ETag", entity_tag(file));
  return made;
}

std::string content_range(const byte_range& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.offset) + "-" + std::to_string(part.offset + part.size - 1) + "/" +
         std::to_string(size);
}

// The order of the conditions is that of RFC 9110, 13.2.2.
answer with_file(const http::request& asked, lookup&& result) {
  range_request wanted;  // all of it
  if (has_condition(asked)) {
    if (!preconditions_hold(asked, result.file))
      return {with_error(http::status::precondition_failed, "the file has another state")};
    if (client_has(asked, result.file)) return begin_file_answer(http::status::not_modified, result.file);
    if (asked.method() != http::verb::head && range_applies(asked, result.file))  // a HEAD has no ranges
      wanted = parse_range(value(asked, http::field::range), result.file.size());
  }
  if (wanted.kind == range_request::unsatisfiable) return {unsatisfiable(result.file)};
  const bool whole = wanted.kind == range_request::whole;
  answer made = begin_file_answer(whole ? http::status::ok : http::status::partial_content, result.file);
  made.part = whole ? byte_range{0, result.file.size()} : wanted.range;
  if (!whole) http::append_field(made.fields, "Content-Range", content_range(*made.part, result.file.size()));
  http::append_field(made.fields, "Content-Type", result.type);
  http::append_field(made.fields, "Accept-Ranges", "bytes");
  made.file = std::move(result.file);
  return made;
}

}  // namespace

http::response begin_header(http::status status) {
  http::response made(status, "", "");
  set_common_fields([&](const char* name, const auto& value) { made.set(name, value); });
  return made;
}

http::response with_text(http::status status, std::string text, const char* type) {
  http::response made = begin_header(status);
  made.set(http::field::content_type, type);
  made.body() = std::move(text);
  return made;
}

http::response with_error(http::status status, const std::string& why) {
  return with_text(status, std::to_string(static_cast<unsigned>(status)) + " " +
                               std::string(boost::beast::http::obsolete_reason(status)) + ": " + why + "\n");
}

http::response not_allowed(const char* allowed) {
  http::response made =
      with_error(http::status::method_not_allowed, std::string("only ") + allowed + " work for this target");
  made.set(http::field::allow, allowed);
  return made;
}

answer from_site(const http::request& asked, const std::string& path, const site& files) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) return {not_allowed("GET, HEAD")};
  const auto error = [&](http::status status, const char* why) { return answer{with_error(status, why)}; };
  if (path.empty()) return error(http::status::bad_request, "the target is malformed");
  lookup result = files.find(path);
  switch (result.outcome) {
    case lookup::found: return with_file(asked, std::move(result));
    case lookup::moved: return {moved(asked)};
    case lookup::forbidden: return error(http::status::forbidden, "this file may not be read");
    case lookup::unavailable: return error(http::status::service_unavailable, "this file cannot be opened now");
    case lookup::missing: break;
  }
  return error(http::status::not_found, "there is no such file");
}

// A small file goes in one piece with the header, another as the system sends files, if it can.
void send(http::exchange& to, answer made) {
  constexpr std::uint64_t small = 16 * 1024, block_size = 64 * 1024;
  if (made.whole) return to.send(*made.whole);
  to.begin(made.code, made.fields, made.part ? std::optional<std::uint64_t>(made.part->size) : std::nullopt);
  if (!made.part || to.request().method() == http::verb::head) return;
  auto [at, left] = *made.part;
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
