#pragma once

// Shared by the tests of tcp_listener::serve.

#include "net_fixture.hpp"

#include "support/watchdog.hpp"

#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::test {

class ServeTest : public NetTest {
  const watchdog watchdog_{"a test of serve"};
};

// How many handlers have begun, how many are alive, and how many have been at a time.
class gauge {
 public:
  class one {
   public:
    explicit one(gauge& of) : of_(of) {
      ++of_.begun;
      const int now = ++of_.alive;
      for (int seen = of_.most; seen < now && !of_.most.compare_exchange_weak(seen, now);) {
      }
    }
    ~one() { --of_.alive; }
    one(const one&) = delete;
    one& operator=(const one&) = delete;

   private:
    gauge& of_;
  };
  std::atomic<int> begun{0}, alive{0}, most{0};
};

inline void echo(net::tcp_stream& stream) {
  char part[100];
  while (const std::size_t got = stream.read_some(part, sizeof part)) stream.write(part, got);
}

// A handler that echoes, and counts itself in `handlers`.
inline auto counted_echo(gauge& handlers) {
  return [&handlers](net::tcp_stream& stream) {
    const gauge::one here(handlers);
    echo(stream);
  };
}

// A listener that serves in a fiber of its own, with a group of its own. Without a grace, unless the options say so.
struct server {
  server() = default;
  explicit server(std::size_t most_connections) : group(on_error::cancel_siblings, most_connections) {}

  template <class Handler>
  void start(Handler handler, net::serve_options options = {.grace = {}}) {
    running = spawn([this, handler = std::move(handler), options = std::move(options)]() mutable {
      listener.serve(group, std::move(handler), options);
    });
  }
  [[nodiscard]] net::tcp_stream client() const {
    auto made = net::tcp_stream::connect(listener.local_endpoint());
    made.expires_after(bound);
    return made;
  }
  [[nodiscard]] std::vector<net::tcp_stream> clients(int count) const {
    std::vector<net::tcp_stream> made;
    for (int i = 0; i < count; ++i) made.push_back(client());
    return made;
  }
  void close_and_join() {
    listener.close();
    running->get();
  }

  net::tcp_listener listener{loopback()};
  task_group group;
  std::optional<join_handle<>> running;
};

inline void expect_hello(net::tcp_stream& client) {
  char answer[5];
  ASSERT_EQ(client.read(answer, 5), 5u);
  EXPECT_EQ(std::string(answer, 5), "hello");
}

inline void expect_echo(net::tcp_stream& client) {
  client.write("hello");
  expect_hello(client);
}

inline void say_hello(std::vector<net::tcp_stream>& clients) {
  for (auto& client : clients) client.write("hello");
}

// One of the clients that have said hello, once it has its echo. In which order connections are accepted is the
// system's affair.
inline std::vector<net::tcp_stream>::iterator answered(std::vector<net::tcp_stream>& clients) {
  auto found = clients.end();
  wait_until([&] {
    found = std::find_if(clients.begin(), clients.end(), [](const net::tcp_stream& each) {
      return net::wait_fd(each.native_handle(), net::interest::read, 0s) != net::interest::none;
    });
    return found != clients.end();
  });
  expect_hello(*found);
  return found;
}

}  // namespace ulexite::test
