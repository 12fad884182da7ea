#include "routes.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace redis_counter {
namespace {

using nlohmann::json;

http::response with_json(const json& made, http::status code = http::status::ok) {
  // Bytes that are not UTF-8 must not cause an exception.
  http::response sent(code, made.dump(-1, ' ', false, json::error_handler_t::replace) + "\n", "application/json");
  sent.set(http::field::server, "ulexite-redis-counter");
  return sent;
}

// Names go into keys, into a SCAN pattern and into URLs, as they are.
std::string_view checked_name(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  if (name.empty() || name.size() > 100 || name.find_first_not_of(allowed) != name.npos)
    throw http::refusal(
        http::status::bad_request,
        "a counter's name has 1 to 100 letters, digits and . _ : - and not \"" + std::string(name) + "\"");
  return name;
}

// "by=N" in the query or the body. Nothing is 1.
std::int64_t parse_step(std::string_view query, std::string_view body) {
  while (body.ends_with('\n') || body.ends_with('\r')) body.remove_suffix(1);
  if (!query.empty() && !body.empty())
    throw http::refusal(http::status::bad_request, "by=N stands in the query or in the body, not in both");
  std::string_view text = body.empty() ? query : body;
  if (text.empty()) return 1;
  const std::string whole(text);
  std::int64_t value = 0;
  if (text.starts_with("by=")) {
    text.remove_prefix(3);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return value;
  }
  throw http::refusal(http::status::bad_request,
                      "expected by=N with a whole number of 64 bits, and not \"" + whole + "\"");
}

http::response wrong_method(const http::request& asked, const std::string& allow) {
  http::response made =
      with_error(http::status::method_not_allowed,
                 "the method " + std::string(asked.method_string()) + " does not work here, but " + allow);
  made.set(http::field::allow, allow);
  return made;
}

http::response missing(std::string_view name) {
  return with_json({{"error", "there is no counter \"" + std::string(name) + "\""}, {"name", name}},
                   http::status::not_found);
}

http::response one_counter(const http::request& asked, std::string_view name, counters& all) {
  switch (asked.method()) {
    case http::verb::post:
      return with_json({{"name", name}, {"value", all.add(name, parse_step(asked.query(), asked.body()))}});
    case http::verb::get:
    case http::verb::head:
      if (const auto value = all.get(name)) return with_json({{"name", name}, {"value", *value}});
      return missing(name);
    case http::verb::delete_:
      if (all.remove(name)) return with_json({{"name", name}, {"deleted", true}});
      return missing(name);
    default: return wrong_method(asked, "GET, HEAD, POST, DELETE");
  }
}

http::response list(counters& all) {
  json listed = json::array();
  for (const auto& [name, value] : all.all()) listed.push_back({{"name", name}, {"value", value}});
  return with_json({{"counters", std::move(listed)}});
}

http::response route(const http::request& asked, counters& all) {
  constexpr std::string_view under = "/counters/";
  const std::string_view path = asked.path();
  if (path.starts_with(under)) return one_counter(asked, checked_name(path.substr(under.size())), all);
  if (path != "/counters" && path != "/healthz")
    throw http::refusal(http::status::not_found, "there is nothing at " + std::string(path));
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) return wrong_method(asked, "GET, HEAD");
  if (path == "/counters") return list(all);
  all.ping();
  return with_json({{"status", "ok"}});
}

http::status status_of(failure::kind what) {
  switch (what) {
    case failure::unfit: return http::status::conflict;
    case failure::broken: return http::status::bad_gateway;
    case failure::late: return http::status::gateway_timeout;
    default: return http::status::service_unavailable;
  }
}

}  // namespace

http::response answer(const http::request& asked, counters& all, std::chrono::nanoseconds limit) try {
  const ulexite::deadline_scope bounded(limit);
  return route(asked, all);
} catch (const failure& error) {  // tells whether a change was made, if that is known
  const bool unknown = error.what_kind == failure::broken || error.what_kind == failure::late;
  json made{{"error", error.what()}};
  if (asked.method() != http::verb::get) made["outcome"] = unknown ? "unknown" : "not done";
  return with_json(made, status_of(error.what_kind));
}

http::response with_error(http::status code, const std::string& why) { return with_json({{"error", why}}, code); }

}  // namespace redis_counter
