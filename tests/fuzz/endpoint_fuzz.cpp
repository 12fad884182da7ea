// Texts that users write, and addresses that the system gives. An accepted text is printed in a form that reads back as
// the same value.
#include "fuzz.hpp"

#include <ulexite/net/address.hpp>
#include <ulexite/net/endpoint.hpp>

#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

namespace net = ulexite::net;

// What `make` returns; nullopt if it refuses.
auto accepted(const auto& make) {
  std::optional<decltype(make())> made;
  try {
    made = make();
  } catch (const std::invalid_argument&) {
  }
  return made;
}

void check(const net::endpoint& at) {
  fuzz::require(at.family() != net::address_family::none, "an endpoint has a family");
  fuzz::require(net::endpoint::parse(at.str()) == at, "str is what parse takes");
  fuzz::require(net::endpoint::from(at.data(), at.size()) == at, "from takes what data gives");
  fuzz::require(net::address(at).resolve() == std::vector{at}, "an endpoint needs no look-up");
}

void check(const net::address& at) {
  fuzz::require(net::address::parse(at.str()) == at, "str is what parse takes");
  if (!at.has_name()) check(at.resolve().front());
}

void check_text(std::string_view text) {
  if (const auto at = accepted([&] { return net::endpoint::parse(text); })) {
    check(*at);
    fuzz::require(accepted([&] { return net::address::parse(text); }).has_value(), "an endpoint is an address");
  }
  if (const auto at = accepted([&] { return net::address::parse(text); })) {
    check(*at);
    fuzz::require(net::address::parse(text, std::uint16_t{80}) == *at, "a port goes before the default one");
  }
  if (const auto at = accepted([&] { return net::address::parse(text, std::uint16_t{80}); })) check(*at);
  if (const auto at = accepted([&] { return net::endpoint::ip(text, 80); })) check(*at);
  if (const auto at = accepted([&] { return net::endpoint::local(text); })) check(*at);
  if (const auto at = accepted([&] { return net::address(text, 80); })) check(*at);
}

// In a block of exactly that size, so that a sanitizer sees what is read behind it.
void check_bytes(std::string_view bytes) {
  if (bytes.size() > sizeof(sockaddr_storage)) return;
  const std::unique_ptr<char[]> block(new char[bytes.size()]);
  std::memcpy(block.get(), bytes.data(), bytes.size());
  const auto at = accepted([&] {
    return net::endpoint::from(reinterpret_cast<const sockaddr*>(block.get()), static_cast<socklen_t>(bytes.size()));
  });
  if (!at) return;
  (void)at->str();
  fuzz::require(net::endpoint::from(at->data(), at->size()) == *at, "from takes what data gives");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_text(bytes);
  check_bytes(bytes);
  return 0;
}
