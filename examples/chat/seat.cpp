#include "seat.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace chat {
namespace {

constexpr std::size_t max_length = 32;  // characters

[[noreturn]] void refuse(const char* what, const std::string& value, const char* rule) {
  const auto shown = nlohmann::json(value.substr(0, 16)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  throw std::invalid_argument(std::string("the ") + what + " " + shown + (value.size() > 16 ? "..." : "") + " is not " +
                              rule);
}

// Counts characters, not bytes. More than allowed if the text is not UTF-8, which the JSON library checks.
std::size_t length(const std::string& utf8) try {
  (void)nlohmann::json(utf8).dump();
  return static_cast<std::size_t>(std::ranges::count_if(utf8, [](char c) { return (c & 0xC0) != 0x80; }));
} catch (const nlohmann::json::type_error&) {
  return max_length + 1;
}

bool good_length(const std::string& value) {
  const std::size_t count = length(value);
  return count >= 1 && count <= max_length;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

seat parse_seat(std::string_view target) {
  const auto url = boost::urls::parse_origin_form({target.data(), target.size()});
  if (!url) throw std::invalid_argument("the address cannot be read");
  seat asked;
  for (const auto& each : url->params()) {
    if (each.key == "room") asked.room = each.value;
    if (each.key == "name") asked.name = each.value;
  }
  constexpr auto allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  if (!good_length(asked.room) || asked.room.find_first_not_of(allowed) != asked.room.npos)
    refuse("room", asked.room, "1 to 32 of A-Z a-z 0-9 _ -");
  if (!good_length(asked.name) || std::ranges::any_of(asked.name, is_control) || asked.name.front() == ' ' ||
      asked.name.back() == ' ')
    refuse("name", asked.name, "1 to 32 characters, no blank at the ends");
  return asked;
}

}  // namespace chat
