#include "site.hpp"

#include <ulexite/base/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

namespace http_server {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "http://host/path", as a client of a proxy writes it, down to "/path".
std::string_view without_authority(std::string_view target) {
  if (!target.starts_with("http://") && !target.starts_with("https://")) return target;
  target.remove_prefix(target.find("//") + 2);
  const auto end = target.find_first_of("/?#");
  return end == target.npos || target[end] != '/' ? "/" : target.substr(end);
}

lookup from_error(const std::error_code& error) {
  switch (error.value()) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO: return {.outcome = lookup::missing};  // the last is a Unix socket's
    case EACCES: return {.outcome = lookup::forbidden};
    default: return {.outcome = lookup::unavailable};
  }
}

}  // namespace

// ---- files ----

open_file::open_file(ulexite::os::file opened) : file_(std::move(opened)) {
  struct stat about{};
  if (::fstat(file_.native_handle(), &about) != 0) throw std::system_error(errno, std::system_category(), "fstat");
  regular_ = S_ISREG(about.st_mode);
  directory_ = S_ISDIR(about.st_mode);
  size_ = static_cast<std::uint64_t>(about.st_size);
  modified_ = about.st_mtim;
}

// ---- targets ----

std::string decode_target(std::string_view target) {
  target = without_authority(target);
  target = target.substr(0, target.find_first_of("?#"));
  std::string path;
  if (!target.starts_with('/')) return path;
  for (std::size_t i = 0; i < target.size(); ++i) {
    char c = target[i];
    if (c == '%') {
      const int high = i + 2 < target.size() ? hex_value(target[i + 1]) : -1;
      const int low = i + 2 < target.size() ? hex_value(target[i + 2]) : -1;
      if (high < 0 || low < 0) return {};
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return {};
    path.push_back(c);
  }
  return path;
}

lookup site::open(const std::string& wanted, bool as_directory) const {
  lookup result{.outcome = lookup::found, .file = open_file(root_.open(wanted)), .type = type_of(wanted)};
  if (result.file.is_directory() && !as_directory) result.outcome = lookup::moved;
  if (result.file.is_directory() && as_directory) return open(wanted + "/index.html", false);
  if (result.file.is_regular() && as_directory) result.outcome = lookup::missing;
  if (!result.file.is_directory() && !result.file.is_regular()) result.outcome = lookup::missing;
  return result;
}

lookup site::find(const std::string& path) const {
  const bool as_directory = path.back() == '/';
  const auto begin = path.find_first_not_of('/');
  const auto end = path.find_last_not_of('/');
  try {
    lookup result = open(begin == path.npos ? "." : path.substr(begin, end - begin + 1), as_directory);
    // An index.html that is a directory itself must not send the client round in circles.
    if (result.outcome == lookup::moved && as_directory) result.outcome = lookup::missing;
    return result;
  } catch (const ulexite::operation_cancelled&) {
    throw;
  } catch (const std::system_error& error) {
    return from_error(error.code());
  }
}

std::string_view type_of(std::string_view file) {
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
      {".css", "text/css; charset=utf-8"},
      {".csv", "text/csv; charset=utf-8"},
      {".gif", "image/gif"},
      {".htm", "text/html; charset=utf-8"},
      {".html", "text/html; charset=utf-8"},
      {".ico", "image/vnd.microsoft.icon"},
      {".jpeg", "image/jpeg"},
      {".jpg", "image/jpeg"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".md", "text/markdown; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".mp3", "audio/mpeg"},
      {".mp4", "video/mp4"},
      {".pdf", "application/pdf"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain; charset=utf-8"},
      {".wasm", "application/wasm"},
      {".webm", "video/webm"},
      {".webp", "image/webp"},
      {".woff", "font/woff"},
      {".woff2", "font/woff2"},
      {".xml", "application/xml"},
  };
  const std::string_view name = file.substr(file.rfind('/') + 1);
  const auto dot = name.rfind('.');
  std::string extension(name.substr(dot == name.npos || dot == 0 ? name.size() : dot));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  static_assert(std::is_sorted(std::begin(types), std::end(types)));
  const auto* const found = std::lower_bound(std::begin(types), std::end(types), extension,
                                             [](const auto& each, std::string_view key) { return each.first < key; });
  return found != std::end(types) && found->first == extension ? found->second : "application/octet-stream";
}

}  // namespace http_server
