#include "links.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include <algorithm>
#include <cctype>

// (No std::regex: it recurses for every character, and a fiber's stack is small.)

namespace {

constexpr std::string_view blanks = " \t\r\n\f";

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& each : made) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return made;
}

std::string without_entities(std::string_view text) {
  std::string made;
  for (std::size_t end; (end = text.find("&amp;")) != text.npos; text.remove_prefix(end + 5))
    made.append(text.substr(0, end)).push_back('&');
  return made.append(text);
}

// Removes the text before the first of `ends` from `rest`, and returns it.
std::string_view take_until(std::string_view& rest, std::string_view ends) {
  const std::string_view taken = rest.substr(0, rest.find_first_of(ends));
  rest.remove_prefix(taken.size());
  return taken;
}

void skip_blanks(std::string_view& rest) { rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size())); }

// The value of href among the attributes at the front of `rest`, which then begins behind the tag.
std::optional<std::string> take_href(std::string_view& rest) {
  std::optional<std::string> found;
  for (skip_blanks(rest); !rest.empty() && rest.front() != '>'; skip_blanks(rest)) {
    const std::string name = lower(take_until(rest, " \t\r\n\f=>"));
    skip_blanks(rest);
    if (!rest.starts_with('=')) continue;  // an attribute without a value
    rest.remove_prefix(1);
    skip_blanks(rest);
    std::string_view value;
    if (rest.starts_with('"') || rest.starts_with('\'')) {
      const char quote = rest.front();
      rest.remove_prefix(1);
      value = take_until(rest, {&quote, 1});
      if (!rest.empty()) rest.remove_prefix(1);
    } else {
      value = take_until(rest, " \t\r\n\f>");
    }
    if (name == "href" && !found) found = without_entities(value);
  }
  return found;
}

std::string to_string(boost::core::string_view view) { return {view.data(), view.size()}; }

// `path` without "." and "..": RFC 3986, 5.2.4. (Boost.URL 1.81 keeps ".." above the root, and writes "/./" for some
// roots.)
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> names;
  bool folder = true;  // whether it ends in a slash
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = take_until(path, "/");
    folder = name.empty() || name == "." || name == "..";
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (name != "." && (!name.empty() || !path.empty())) {
      names.push_back(name);
    }
  }
  std::string made;
  for (const std::string_view name : names) (made += '/') += name;
  return folder ? made + '/' : made;
}

}  // namespace

std::vector<std::string> links_of(std::string_view html) {
  std::vector<std::string> found;
  for (;;) {
    html.remove_prefix(std::min(html.find('<'), html.size()));
    if (html.empty()) return found;
    if (html.starts_with("<!--")) {
      html.remove_prefix(std::min(html.find("-->"), html.size()));
    } else if (html.size() > 2 && (html[1] == 'a' || html[1] == 'A') && blanks.find(html[2]) != blanks.npos) {
      html.remove_prefix(2);
      if (auto href = take_href(html)) found.push_back(std::move(*href));
    } else {
      html.remove_prefix(1);
    }
  }
}

std::optional<std::string> resolve_link(const std::string& base, const std::string& reference) {
  const auto from = boost::urls::parse_uri(base);
  const auto to = boost::urls::parse_uri_reference(reference);
  boost::urls::url made;
  if (!from || !to || !boost::urls::resolve(*from, *to, made)) return std::nullopt;
  made.remove_fragment();
  made.normalize();
  if (made.scheme() != "http" || made.has_userinfo()) return to_string(made.buffer());
  return "http://" + to_string(made.encoded_host()) +
         (made.has_port() && made.port() != "80" ? ":" + to_string(made.port()) : "") +
         without_dots(to_string(made.encoded_path())) + (made.has_query() ? "?" + to_string(made.encoded_query()) : "");
}
