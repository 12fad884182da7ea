// Any bytes as the requests of one connection to a server of interop/http.hpp, and what http_server makes of their
// fields.
#include "../../examples/http_server/condition.hpp"
#include "fuzz.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/http_exchange.hpp>
#include <ulexite/testing/explore.hpp>

#include <string>
#include <system_error>

namespace {

namespace ux = ulexite;
namespace net = ulexite::net;
namespace http = ulexite::http;

constexpr http::limits limits{.header_size = 512, .body_size = 1024};

// Reads a request to its end. Whether another one may follow.
bool read_request(http::wire& from, boost::beast::flat_buffer& buffer) {
  http::exchange now(from, buffer, limits);
  now.read_header();
  const http::request& asked = now.request();
  fuzz::require(!asked.target().empty() && !asked.method_string().empty(), "a request has a target and a method");
  if (const std::string path = http_server::decode_target(http::view(asked.target())); !path.empty())
    fuzz::require(path.starts_with('/') && path.find('\0') == path.npos, "a path of a file");
  (void)http_server::preconditions_hold(asked, {});
  (void)http_server::client_has(asked, {});
  (void)http_server::range_applies(asked, {});
  std::size_t size = 0;
  for (auto part = now.read_some(); !part.empty(); part = now.read_some()) size += part.size();
  fuzz::require(size <= limits.body_size, "a body is not larger than is allowed");
  return now.keep_alive();
}

void send(fuzz::input& from, net::tcp_stream& server) {
  std::error_code error;
  while (!from.text.empty() && !error) {
    const std::string_view portion = from.text.substr(0, from.choices.empty() ? 4096 : 1 + from.choose(64));
    from.text.remove_prefix(portion.size());
    server.write(portion, error);
  }
  server.shutdown_write(error);
  char data[256];
  while (!error && server.read_some(data, sizeof data, error) > 0) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input from(data, size);
  ux::testing::run_with_virtual_time([&] {
    auto ends = ux::testing::stream_pair();
    auto& [server, client] = ends;
    ux::task_group clients;
    clients.spawn([&from, &to = client] { send(from, to); });
    {
      ux::detail::http::bare_wire wire(server);
      boost::beast::flat_buffer buffer(limits.header_size + http::exchange::block_size);
      try {
        while (read_request(wire, buffer)) {
        }
      } catch (const http::refusal&) {
      } catch (const std::system_error&) {
      }
    }
    server.close();
    clients.wait();
    client.close();
  });
  return 0;
}
