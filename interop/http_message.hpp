#pragma once

// Requests, answers and addresses of HTTP/1.1, for <ulexite/interop/http_server.hpp> and http_client.hpp. Nothing here
// waits.

#include <ulexite/base/standard.hpp>

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulexite::http {

using boost::beast::http::field;
using boost::beast::http::fields;
using boost::beast::http::status;
using boost::beast::http::verb;

// A text of Beast as one of the standard library; before Boost 1.80 it is another type.
inline std::string_view view(boost::beast::string_view text) noexcept { return {text.data(), text.size()}; }

// The lines of a field, joined by commas; empty if there is none. A field that may have one line only so becomes
// malformed if it has several.
template <class Name>  // http::field, or a text
std::string value(const fields& from, const Name& name) {
  std::string joined;
  for (auto [line, end] = from.equal_range(name); line != end; ++line) {
    if (!joined.empty()) joined += ", ";
    joined.append(line->value().data(), line->value().size());
  }
  return joined;
}

// A time as in "Sun, 06 Nov 1994 08:49:37 GMT", which has four digits for the year: one before the year 0 or after 9999
// becomes the nearest that fits. Of std::chrono and not of gmtime, which takes a lock of the whole process for the time
// zone that it does not use. Nor of snprintf, which takes longer than the rest of an answer's header.
inline std::string date(std::chrono::sys_seconds time) {
  constexpr std::string_view days = "SunMonTueWedThuFriSat", months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr auto begin_of = [](int year) {
    return std::chrono::sys_seconds(std::chrono::sys_days(std::chrono::year(year) / 1 / 1));
  };
  const auto at = std::clamp(time, begin_of(0), begin_of(10'000) - std::chrono::seconds(1));
  const auto midnight = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(at - midnight);
  std::string text = "Sun, 06 Nov 1994 08:49:37 GMT";
  const auto put_two = [&text](std::size_t place, auto number) {
    text[place] = static_cast<char>('0' + number / 10);
    text[place + 1] = static_cast<char>('0' + number % 10);
  };
  const auto year = static_cast<unsigned>(static_cast<int>(day.year()));
  days.copy(&text[0], 3, std::chrono::weekday(midnight).c_encoding() * 3);
  put_two(5, static_cast<unsigned>(day.day()));
  months.copy(&text[8], 3, static_cast<unsigned>(day.month()) * 3 - 3);
  put_two(12, year / 100);
  put_two(14, year % 100);
  put_two(17, clock.hours().count());
  put_two(20, clock.minutes().count());
  put_two(23, clock.seconds().count());
  return text;
}

// A request: Beast's message with a body in a string, so method(), operator[], set(), body() and the like work. Its
// version is HTTP/1.1.
class request : public boost::beast::http::request<boost::beast::http::string_body> {
 public:
  // GET / without fields.
  request() : request(verb::get, "/") {}
  // A request without fields. A client adds those that it needs.
  explicit request(verb method, std::string_view target = "/", std::string body = {}) {
    this->method(method);
    this->target({target.data(), target.size()});
    this->body() = std::move(body);
  }

  // The target before its '?', as it was sent: "/a%20b". A host in it is not split off. Valid until the target changes.
  [[nodiscard]] std::string_view path() const { return whole().substr(0, whole().find('?')); }
  // The target behind its '?', as it was sent: "x=1". Valid until the target changes.
  [[nodiscard]] std::string_view query() const {
    const auto mark = whole().find('?');
    return mark == std::string_view::npos ? std::string_view() : whole().substr(mark + 1);
  }

 private:
  [[nodiscard]] std::string_view whole() const { return view(target()); }
};

// An answer: Beast's message with a body in a string. The server adds Date, Connection and Content-Length.
class response : public boost::beast::http::response<boost::beast::http::string_body> {
 public:
  // 200 without a body.
  response() = default;
  // An answer with a text. An empty type leaves Content-Type out.
  response(http::status code, std::string body, std::string_view type = "text/plain; charset=utf-8") {
    result(code);
    if (!type.empty()) set(field::content_type, boost::beast::string_view(type.data(), type.size()));
    this->body() = std::move(body);
  }
  // The same, by the number of the status, such as 404.
  response(unsigned code, std::string body, std::string_view type = "text/plain; charset=utf-8")
      : response(http::status::ok, std::move(body), type) {
    result(code);
  }
};

// Thrown by a handler, it is the answer. So is one that the functions of an exchange throw when the request is wrong,
// or over a limit.
class refusal : public std::runtime_error {
 public:
  // `why` is for the client. http::status::unknown counts as 500.
  refusal(http::status code, const std::string& why)
      : std::runtime_error(why), result_(code == status::unknown ? status::internal_server_error : code) {}
  // The same, by the number of the status. One that Beast does not know, such as 418, counts as 500.
  refusal(unsigned code, const std::string& why) : refusal(boost::beast::http::int_to_status(code), why) {}

  // The status of the answer.
  [[nodiscard]] http::status result() const noexcept { return result_; }

 private:
  http::status result_;
};

}  // namespace ulexite::http

namespace ulexite::detail::http {

using namespace ulexite::http;
using ulexite::http::request;  // there is a detail::request

// Whether it is a name, an IPv4 address or an IPv6 address in brackets, perhaps with a port; or nothing at all.
inline bool is_host(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos) {
    const auto is_digit = [](char each) { return each >= '0' && each <= '9'; };
    if (!std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(), is_digit)) return false;
    text = text.substr(0, colon);
  }
  if (text.starts_with('[') && text.ends_with(']')) {
    in6_addr number;
    return ::inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &number) == 1;
  }
  static constexpr auto is_of_name = [] {
    std::array<bool, 256> of{};
    for (const char each : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                            "-._~%!$&'()*+,;="))
      of[static_cast<unsigned char>(each)] = true;
    return of;
  }();
  return std::all_of(text.begin(), text.end(), [](unsigned char each) { return is_of_name[each]; });
}

// Whether Transfer-Encoding is another than "chunked", or of HTTP/1.0, which does not know the field.
template <class Header>
bool has_strange_encoding(const Header& header) {
  const auto count = header.count(field::transfer_encoding);
  return count > 1 ||
         (count == 1 && (header.version() < 11 || !boost::beast::iequals(header[field::transfer_encoding], "chunked")));
}

}  // namespace ulexite::detail::http

namespace ulexite::http {

// Throws a refusal for a wrong Host or Transfer-Encoding. serve() does it for each request; it is for programs that
// read requests by Beast themselves. Beast ignores any Transfer-Encoding but `chunked`, so the body would pass for the
// next request. A proxy before this server may see it otherwise, and let such a request through. A proxy that speaks
// only HTTP/1.0 does not know the field at all.
template <class Header>
void check_host_and_encoding(const Header& asked) {
  const bool is_old = asked.version() < 11;
  std::size_t hosts = 0, encodings = 0;
  std::string_view host;
  for (const auto& each : asked) {  // one look at each field takes less than a search for each of the two
    if (each.name() == field::host && hosts++ == 0) host = view(each.value());
    if (each.name() == field::transfer_encoding) ++encodings;
  }
  if (hosts > 1) throw refusal(status::bad_request, "there are several Hosts");
  if (hosts == 0 && !is_old) throw refusal(status::bad_request, "the Host is missing");
  if (!detail::http::is_host(host)) throw refusal(status::bad_request, "the Host is none");
  if (encodings == 0) return;
  if (is_old) throw refusal(status::bad_request, "HTTP/1.0 has no Transfer-Encoding");
  if (detail::http::has_strange_encoding(asked))
    throw refusal(status::not_implemented, "the Transfer-Encoding is not \"chunked\"");
}

// Erases what concerns only one connection, as a proxy must: known fields, and those that `Connection` names, but Host.
// Transfer-Encoding stays for the functions that send the message, which set or drop it.
inline void erase_hop_fields(fields& header) {
  std::vector<std::string> named;  // copies, because an erased line takes its names with it
  for (auto [line, end] = header.equal_range(field::connection); line != end; ++line)
    for (const auto name : boost::beast::http::token_list(line->value())) named.emplace_back(name.data(), name.size());
  for (const std::string& name : named)
    if (!boost::beast::iequals(name, "host")) header.erase(name);
  for (const field hop : {field::connection, field::keep_alive, field::te, field::trailer, field::upgrade,
                          field::proxy_connection, field::expect})
    header.erase(hop);
}

// Appends the line of a field. Throws std::invalid_argument for a value with a line's end in it: by that, whoever has
// made the value could write fields, or a body. The name is not checked.
inline void append_field(std::string& to, std::string_view name, std::string_view value) {
  if (value.find('\r') != std::string_view::npos || value.find('\n') != std::string_view::npos)
    throw std::invalid_argument("the field " + std::string(name) + " has a line's end in its value");
  const std::size_t before = to.size();
  to.resize(before + name.size() + value.size() + 4);  // one growth for all parts
  char* end = std::copy(name.begin(), name.end(), to.data() + before);
  end = std::copy_n(": ", 2, end);
  end = std::copy(value.begin(), value.end(), end);
  std::copy_n("\r\n", 2, end);
}

// An absolute address of http or https, in its parts.
struct url {
  bool secure = false;     // https
  std::string host;        // without the brackets of an IPv6 address
  std::uint16_t port = 0;  // also if the text has none
  std::string authority;   // host and port as written, for the field Host
  std::string target;      // path and query, "/" if there is none; without the fragment

  // Splits "https://example.org:8443/path?query". Throws std::invalid_argument that names the text: for another scheme,
  // a user name, a host or a port that is none, or a byte that an address must not have, such as a blank.
  [[nodiscard]] static url parse(std::string_view text);
  // The address that `reference`, such as a Location, means in an answer of this one. Throws as parse does.
  [[nodiscard]] url resolve(std::string_view reference) const;

  // Scheme, host and port: what a connection depends on.
  [[nodiscard]] std::string origin() const { return (secure ? "https://" : "http://") + authority; }
};

}  // namespace ulexite::http

namespace ulexite::detail::http {

// Drops the empty lines before a request, which RFC 9112, 2.2 lets a client send, and which Beast takes for a malformed
// request. Returns whether the rest of the flat `buffer` begins a request.
template <class Buffer>
bool skip_empty_lines(Buffer& buffer) {
  const auto begins_with = [&buffer](const char* text) {
    return std::string_view(static_cast<const char*>(buffer.data().data()), buffer.size()).starts_with(text);
  };
  while (begins_with("\r\n")) buffer.consume(2);
  return buffer.size() > 1 || (buffer.size() == 1 && !begins_with("\r"));
}

// RFC 3986, 5.2.4.
inline std::string without_dots(std::string_view path) {
  std::string made;
  while (!path.empty()) {
    const auto end = path.find('/', 1);
    const std::string_view part = path.substr(0, end);  // "/name"
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
    const bool up = part == "/..", stays = part == "/.";
    if (up) made.erase(std::min(made.rfind('/'), made.size()));
    if (!up && !stays) made += part;
    if ((up || stays) && path.empty()) made += '/';
  }
  return made;
}

// Appends the fields, and the empty line. (Not by Beast's serializer, which takes ten times as long.)
inline void append(std::string& to, const fields& all) {
  for (const auto& each : all) append_field(to, view(each.name_string()), view(each.value()));
  to += "\r\n";
}

// The size of a body, if its header tells.
inline std::optional<std::uint64_t> length_of(const fields& header) {
  const auto length = header.find(field::content_length);
  if (length == header.end()) return std::nullopt;
  std::uint64_t size = 0;
  const std::string_view text = view(length->value());
  std::from_chars(text.data(), text.data() + text.size(), size);
  return size;
}

// Appends a part of a body as a chunk.
inline void append_chunk(std::string& to, std::string_view part) {
  char size[24];
  to.append(size, static_cast<std::size_t>(std::snprintf(size, sizeof size, "%zx\r\n", part.size())));
  to.append(part) += "\r\n";
}

// Appends the field Date of now, whose text is made once a second by each thread. Not inlined, because a compiler may
// keep the address of a thread_local over a switch of fibers.
[[gnu::noinline]] inline void append_date(std::string& to) {
  constexpr std::string_view form = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  thread_local std::time_t made_at = -1;
  thread_local char line[form.size()];
  if (const std::time_t now = ::time(nullptr); now != made_at) {
    ("Date: " + date(std::chrono::sys_seconds(std::chrono::seconds(now))) + "\r\n").copy(line, sizeof line);
    made_at = now;
  }
  to.append(line, sizeof line);
}

// Throws a refusal for a wrong Expect too.
inline void check_header(const request& asked) {
  check_host_and_encoding(asked);
  // HTTP/1.0 has no Expect, and its client does not understand "100 Continue".
  const std::string expected = asked.version() < 11 ? std::string() : value(asked, field::expect);
  if (!expected.empty() && !boost::beast::iequals(expected, "100-continue"))
    throw refusal(status::expectation_failed, "cannot meet \"" + expected + "\"");
}

// Makes room for parts of a body, of up to `most` bytes. Beast reads as many bytes as the buffer has room for, but 512
// if it has none: then the parts would be as small as the header's rest.
template <class Buffer, class Parser>
void make_room_for_body(Buffer& buffer, const Parser& parser, std::size_t most) {
  buffer.reserve(std::min<std::uint64_t>(parser.content_length().value_or(most), most));
}

}  // namespace ulexite::detail::http

namespace ulexite::http {

inline url url::parse(std::string_view text) {
  const auto fail = [text](const char* why) {
    return std::invalid_argument("\"" + std::string(text) + "\" is no address of HTTP: " + why);
  };
  for (const char each : text)
    if (each <= ' ' || each > '~') throw fail("it has a byte that must be written as %XX");
  url made;
  std::string_view rest = text;
  const auto take_scheme = [&rest](std::string_view scheme) {
    const bool has = boost::beast::iequals(boost::beast::string_view(rest.data(), std::min(rest.size(), scheme.size())),
                                           boost::beast::string_view(scheme.data(), scheme.size()));
    if (has) rest.remove_prefix(scheme.size());
    return has;
  };
  made.secure = take_scheme("https://");
  if (!made.secure && !take_scheme("http://")) throw fail("it does not begin with http:// or https://");
  made.authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(made.authority.size());
  if (made.authority.find('@') != std::string::npos) throw fail("it has a user name");
  const auto colon = made.authority.rfind(':');
  const bool has_port = colon != std::string::npos && made.authority.find(']', colon) == std::string::npos;
  made.host = made.authority.substr(0, has_port ? colon : std::string::npos);
  if (made.host.empty() || !detail::http::is_host(made.authority)) throw fail("its host is none");
  if (made.host.starts_with('[')) made.host = made.host.substr(1, made.host.size() - 2);
  made.port = made.secure ? 443 : 80;
  if (has_port && colon + 1 < made.authority.size()) {
    const char* const end = made.authority.data() + made.authority.size();
    const auto parsed = std::from_chars(made.authority.data() + colon + 1, end, made.port);
    if (parsed.ec != std::errc() || parsed.ptr != end || made.port == 0) throw fail("its port is none");
  }
  rest = rest.substr(0, rest.find('#'));
  made.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return made;
}

inline url url::resolve(std::string_view reference) const {
  const auto colon = reference.find(':');
  if (colon != std::string_view::npos && colon < reference.find_first_of("/?#")) return parse(reference);
  if (reference.starts_with("//")) return parse((secure ? "https:" : "http:") + std::string(reference));
  const std::string_view own(target);
  const std::string_view path = own.substr(0, own.find('?'));
  const std::string_view to = reference.substr(0, reference.find_first_of("?#"));
  std::string whole(to);
  if (to.empty()) whole = reference.starts_with('?') ? path : own;
  if (!to.empty() && !to.starts_with('/')) whole.insert(0, path.substr(0, path.rfind('/') + 1));
  if (!to.empty()) whole = detail::http::without_dots(whole);
  return parse(origin() + whole + std::string(reference.substr(to.size())));
}

}  // namespace ulexite::http
