// Any bytes as the requests of one connection to http_server.
#include "../../examples/http_server/condition.hpp"
#include "../../examples/http_server/incoming.hpp"
#include "../../examples/http_server/refusal.hpp"
#include "fuzz.hpp"

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>

#include <string>
#include <system_error>

namespace {

namespace ux = ulexite;
namespace net = ulexite::net;
namespace http = boost::beast::http;

constexpr http_server::limits limits{.header_size = 512, .body_size = 1024};

// Reads a request to its end. Whether another one may follow.
bool read_request(http_server::wire& from, boost::beast::flat_buffer& buffer) {
  http_server::incoming asked(from, buffer, limits);
  asked.read_header();
  fuzz::require(!asked.target().empty() && !asked.method().empty(), "a request has a target and a method");
  std::string path;
  if (http_server::decode_target(asked.target(), path))
    fuzz::require(path.starts_with('/') && path.find('\0') == path.npos, "a path of a file");
  (void)http_server::preconditions_hold(asked, {});
  (void)http_server::client_has(asked, {});
  (void)http_server::range_applies(asked, {});
  std::size_t size = 0;
  for (auto part = asked.read_body(); !part.empty(); part = asked.read_body()) size += part.size();
  fuzz::require(size <= limits.body_size, "a body is not larger than is allowed");
  return asked.header().keep_alive();
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
    ux::wait_group clients;
    clients.spawn([&from, &to = client] { send(from, to); });
    {
      const auto wire = http_server::bare(server);
      boost::beast::flat_buffer buffer(limits.header_size + http_server::incoming::block_size);
      try {
        while (read_request(*wire, buffer)) {
        }
      } catch (const http_server::refusal&) {
      } catch (const std::system_error&) {
      }
    }
    server.close();
    clients.wait();
    client.close();
  });
  return 0;
}
