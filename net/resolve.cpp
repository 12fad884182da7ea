#include <ulexite/net/fd_wait.hpp>
#include <ulexite/net/resolve.hpp>

#include <netdb.h>

#include <memory>
#include <string>

namespace ulexite::net {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "getaddrinfo"; }
  std::string message(int code) const override { return gai_strerror(code); }
};

struct list_deleter {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

}  // namespace

const std::error_category& resolve_category() noexcept {
  static const category instance;
  return instance;
}

std::vector<endpoint> resolve(std::string_view host, std::string_view service) {
  const std::string node(host), port(service);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(node.c_str(), port.c_str(), &wanted, &found)) {
    const std::error_code code = error == EAI_SYSTEM ? std::error_code(detail::last_errno(), std::system_category())
                                                     : std::error_code(error, resolve_category());
    throw std::system_error(code, "ulexite: resolving " + node + ":" + port);
  }
  const std::unique_ptr<addrinfo, list_deleter> list(found);
  std::vector<endpoint> endpoints;
  for (const addrinfo* each = found; each; each = each->ai_next)
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6)
      endpoints.push_back(endpoint::from(each->ai_addr, each->ai_addrlen));
  return endpoints;
}

}  // namespace ulexite::net
