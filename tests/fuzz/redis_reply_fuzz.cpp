// Any bytes as the replies of a redis server, in portions: the client takes them, or throws what it says it does.
#include "fuzz.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/redis.hpp>
#include <ulexite/testing/explore.hpp>

#include <system_error>

namespace {

namespace ux = ulexite;
namespace redis = ulexite::redis;
namespace net = ulexite::net;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 6379);

void answer(fuzz::input& from, net::tcp_listener& listener) {
  net::tcp_stream client = listener.accept();
  while (!from.text.empty()) {
    const std::string_view portion = from.text.substr(0, from.choices.empty() ? 4096 : 1 + from.choose(64));
    from.text.remove_prefix(portion.size());
    std::error_code error;
    client.write(portion, error);
    if (error) return;  // the client has disconnected
  }
}

void read_all(const redis::reply_view& reply) {
  static_cast<void>(reply.describe());
  if (reply.is_text()) fuzz::require(reply.text().data()[reply.text().size()] == '\0', "a text has an end");
  if (!reply.is_list()) return;
  for (const redis::reply_view each : reply) read_all(each);
}

// Throws redis::reply_error if it is something else.
void read_as_streams(const redis::reply_view& reply) try {
  static_cast<void>(redis::streams_in(reply));
} catch (const redis::reply_error&) {
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input from(data, size);
  ux::testing::run_with_virtual_time([&] {
    net::tcp_listener listener(server_at);
    ux::task_group server;
    server.spawn([&] { answer(from, listener); });
    {
      redis::connection db(server_at);
      try {
        for (;;) {
          const redis::reply reply = db.receive();
          read_all(reply);
          read_as_streams(reply);
        }
      } catch (const redis::reply_error&) {
      } catch (const std::system_error&) {
      }
    }
    server.wait();
  });
  return 0;
}
