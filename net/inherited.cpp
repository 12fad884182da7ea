#include <ulexite/net/inherited.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite::net {
namespace {

// 0 for a text that is not a positive number.
int number_in(const char* variable) noexcept {
  const char* const value = std::getenv(variable);
  if (!value) return 0;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

}  // namespace

std::vector<int> inherited_descriptors() {
  constexpr int first = 3;  // after the standard streams
  const int count = number_in("LISTEN_FDS");
  std::vector<int> given;
  if (number_in("LISTEN_PID") != ::getpid() || count > std::numeric_limits<int>::max() - first) return given;
  for (int fd = first; fd < first + count; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
      throw std::system_error(errno, std::system_category(), "ulexite: the inherited descriptor " + std::to_string(fd));
    given.push_back(fd);
  }
  return given;
}

}  // namespace ulexite::net
