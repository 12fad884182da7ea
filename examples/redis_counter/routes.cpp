#include "routes.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace redis_counter {
namespace http = boost::beast::http;
namespace {

using nlohmann::json;

// A client's error.
struct complaint {
  http::status status;
  std::string why;
  std::string allow{};  // methods, for method_not_allowed
};

struct result {
  http::status status = http::status::ok;
  json body{};
  std::string allow{};
};

response to_response(const result& made, unsigned version, bool keep_alive) {
  response sent(made.status, version);
  sent.set(http::field::server, "ulexite-redis-counter");
  sent.set(http::field::content_type, "application/json");
  if (!made.allow.empty()) sent.set(http::field::allow, made.allow);
  sent.keep_alive(keep_alive);
  // Bytes that are not UTF-8 must not cause an exception.
  sent.body() = made.body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  sent.prepare_payload();
  return sent;
}

// Names go into keys, into a SCAN pattern and into URLs, as they are.
std::string_view checked_name(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  if (name.empty() || name.size() > 100 || name.find_first_not_of(allowed) != name.npos)
    throw complaint{http::status::bad_request,
                    "a counter's name has 1 to 100 letters, digits and . _ : - and not \"" + std::string(name) + "\""};
  return name;
}

// "by=N" in the query or the body. Nothing is 1.
std::int64_t parse_step(std::string_view query, std::string_view body) {
  while (body.ends_with('\n') || body.ends_with('\r')) body.remove_suffix(1);
  if (!query.empty() && !body.empty())
    throw complaint{http::status::bad_request, "by=N stands in the query or in the body, not in both"};
  std::string_view text = body.empty() ? query : body;
  if (text.empty()) return 1;
  const std::string whole(text);
  std::int64_t value = 0;
  if (text.starts_with("by=")) {
    text.remove_prefix(3);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return value;
  }
  throw complaint{http::status::bad_request, "expected by=N with a whole number of 64 bits, and not \"" + whole + "\""};
}

complaint wrong_method(const request& asked, const char* allow) {
  return {http::status::method_not_allowed,
          "the method " + std::string(asked.method_string()) + " does not work here, but " + allow, allow};
}

result missing(std::string_view name) {
  return {http::status::not_found, {{"error", "there is no counter \"" + std::string(name) + "\""}, {"name", name}}};
}

result one_counter(const request& asked, std::string_view name, std::string_view query, counters& all) {
  switch (asked.method()) {
    case http::verb::post: return {.body = {{"name", name}, {"value", all.add(name, parse_step(query, asked.body()))}}};
    case http::verb::get:
    case http::verb::head:
      if (const auto value = all.get(name)) return {.body = {{"name", name}, {"value", *value}}};
      return missing(name);
    case http::verb::delete_:
      if (all.remove(name)) return {.body = {{"name", name}, {"deleted", true}}};
      return missing(name);
    default: throw wrong_method(asked, "GET, HEAD, POST, DELETE");
  }
}

result list(counters& all) {
  json listed = json::array();
  for (const auto& [name, value] : all.all()) listed.push_back({{"name", name}, {"value", value}});
  return {.body = {{"counters", std::move(listed)}}};
}

result route(const request& asked, counters& all) {
  constexpr std::string_view under = "/counters/";
  const std::string_view target(asked.target().data(), asked.target().size());
  const auto mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = mark == target.npos ? "" : target.substr(mark + 1);
  if (path.starts_with(under)) return one_counter(asked, checked_name(path.substr(under.size())), query, all);
  if (path != "/counters" && path != "/healthz")
    throw complaint{http::status::not_found, "there is nothing at " + std::string(path)};
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) throw wrong_method(asked, "GET, HEAD");
  if (path == "/counters") return list(all);
  all.ping();
  return {.body = {{"status", "ok"}}};
}

http::status status_of(failure::kind what) {
  switch (what) {
    case failure::unfit: return http::status::conflict;
    case failure::broken: return http::status::bad_gateway;
    case failure::late: return http::status::gateway_timeout;
    default: return http::status::service_unavailable;
  }
}

// Reports whether a change was made, if that is known.
result from_failure(const failure& error, const request& asked) {
  result made{status_of(error.what_kind), {{"error", error.what()}}};
  if (asked.method() == http::verb::get) return made;
  const bool unknown = error.what_kind == failure::broken || error.what_kind == failure::late;
  made.body["outcome"] = unknown ? "unknown" : "not done";
  return made;
}

}  // namespace

response answer(const request& asked, counters& all, std::chrono::nanoseconds limit) {
  result made;
  try {
    const ulexite::deadline_scope bounded(limit);
    made = route(asked, all);
  } catch (const complaint& error) {
    made = {error.status, {{"error", error.why}}, error.allow};
  } catch (const failure& error) {
    made = from_failure(error, asked);
  } catch (const ulexite::operation_cancelled&) {
    throw;
  } catch (const std::exception& error) {
    made = {http::status::internal_server_error, {{"error", error.what()}}};
  }
  return to_response(made, asked.version(), asked.keep_alive());
}

response refusal(http::status status, const std::string& why) {
  return to_response({status, {{"error", why}}}, 11, false);
}

}  // namespace redis_counter
