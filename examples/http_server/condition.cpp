#include "condition.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iterator>

namespace http_server {
namespace {

enum class weak_tags { are_as_good, do_not_count };

// Whether the tag is one of a list such as: "a", W/"b".
bool lists(std::string_view list, std::string_view tag, weak_tags weak) {
  if (list == "*") return true;
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string_view each = list.substr(0, comma);
    while (each.starts_with(' ') || each.starts_with('\t')) each.remove_prefix(1);
    while (each.ends_with(' ') || each.ends_with('\t')) each.remove_suffix(1);
    if (weak == weak_tags::are_as_good && each.starts_with("W/")) each.remove_prefix(2);
    if (each == tag) return true;
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

// A year with two digits is at most 50 years ahead: RFC 9110, 5.6.7.
int with_century(int years_since_1900) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const int now = static_cast<int>(std::chrono::year_month_day(today).year());
  const int year = now - now % 100 + years_since_1900 % 100;
  return (year > now + 50 ? year - 100 : year) - 1900;
}

}  // namespace

std::string entity_tag(const open_file& file) {
  char text[sizeof "\"0123456789abcdef.3b9ac9ff-0123456789abcdef\""];
  char* end = text;
  const auto add = [&](char before, auto number) {
    *end++ = before;
    end = std::to_chars(end, std::end(text), static_cast<std::uint64_t>(number), 16).ptr;
  };
  add('"', file.modified().tv_sec);
  add('.', file.modified().tv_nsec);
  add('-', file.size());
  *end++ = '"';
  return {text, end};
}

bool has_condition(const http::request& asked) {
  return std::any_of(asked.begin(), asked.end(), [](const auto& each) {
    switch (each.name()) {
      case http::field::if_match:
      case http::field::if_modified_since:
      case http::field::if_none_match:
      case http::field::if_range:
      case http::field::if_unmodified_since:
      case http::field::range: return true;
      default: return false;
    }
  });
}

bool preconditions_hold(const http::request& asked, const open_file& file) {
  const std::string tags = value(asked, http::field::if_match);
  if (!tags.empty()) return lists(tags, entity_tag(file), weak_tags::do_not_count);
  const auto since = parse_http_date(value(asked, http::field::if_unmodified_since));
  return !since || file.modified().tv_sec <= *since;
}

// Nothing here depends on single bytes.
bool client_has(const http::request& asked, const open_file& file) {
  const std::string tags = value(asked, http::field::if_none_match);
  if (!tags.empty()) return lists(tags, entity_tag(file), weak_tags::are_as_good);
  const auto since = parse_http_date(value(asked, http::field::if_modified_since));
  return since && file.modified().tv_sec <= *since;
}

bool range_applies(const http::request& asked, const open_file& file) {
  const std::string state = value(asked, http::field::if_range);
  return state.empty() || state == entity_tag(file) || parse_http_date(state) == file.modified().tv_sec;
}

std::optional<std::time_t> parse_http_date(std::string_view text) {
  if (text.empty()) return std::nullopt;  // as most requests have it
  const std::string whole(text);
  for (const char* const form : {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    std::tm utc{};
    const char* const end = ::strptime(whole.c_str(), form, &utc);
    if (end == nullptr || *end != '\0') continue;
    if (std::string_view(form).find("%y") != std::string_view::npos) utc.tm_year = with_century(utc.tm_year);
    return ::timegm(&utc);
  }
  return std::nullopt;
}

}  // namespace http_server
