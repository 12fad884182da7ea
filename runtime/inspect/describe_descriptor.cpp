#include <ulexite/base/kernel.hpp>
#include <ulexite/runtime/inspect/report.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace ulexite::detail {
namespace {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  // Calls getsockname or getpeername; false if there is no such address. A run has sockets that the kernel does not
  // know.
  bool take(int (*get)(int, sockaddr*, socklen_t*), int fd) noexcept {
    return get(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0;
  }
};

std::string describe_internet_address(const socket_address& of) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool six = of.storage.ss_family == AF_INET6;
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&of.storage);
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&of.storage);
  ::inet_ntop(of.storage.ss_family, six ? static_cast<const void*>(&v6->sin6_addr) : &v4->sin_addr, text, sizeof text);
  const std::string port = std::to_string(ntohs(six ? v6->sin6_port : v4->sin_port));
  return six ? '[' + std::string(text) + "]:" + port : std::string(text) + ':' + port;
}

std::string describe_address(const socket_address& of) {
  if (of.storage.ss_family != AF_UNIX) return describe_internet_address(of);
  constexpr std::size_t head = offsetof(sockaddr_un, sun_path);
  if (of.size <= head) return "without a name";
  const auto* const path = reinterpret_cast<const sockaddr_un*>(&of.storage)->sun_path;
  const bool is_abstract = path[0] == '\0';
  const std::string name(path + is_abstract, ::strnlen(path + is_abstract, of.size - head - is_abstract));
  return is_abstract ? '@' + name : name;
}

int option_of(int fd, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return kernel::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : 0;
}

std::string describe_socket(int fd, const socket_address& here) {
  const bool stream = option_of(fd, SO_TYPE) == SOCK_STREAM;
  switch (here.storage.ss_family) {
    case AF_INET:
    case AF_INET6:
    case AF_UNIX: break;
    default: return "a socket of family " + std::to_string(here.storage.ss_family);
  }
  std::string text = here.storage.ss_family == AF_UNIX ? "Unix socket" : stream ? "TCP" : "UDP";
  if (option_of(fd, SO_ACCEPTCONN) != 0) return text + ", listens at " + describe_address(here);
  text += ", here " + describe_address(here);
  if (socket_address peer; peer.take(kernel::getpeername, fd)) return text + ", peer " + describe_address(peer);
  return stream ? text + ", not connected" : text;
}

}  // namespace

std::string describe_descriptor(int fd) {
  if (socket_address here; here.take(kernel::getsockname, fd)) return describe_socket(fd, here);
  std::error_code error;
  const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  return error ? "closed" : target.string();
}

}  // namespace ulexite::detail
