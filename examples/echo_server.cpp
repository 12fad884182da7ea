// A TCP server that sends back what it gets: one fiber for each connection.
//
//   echo_server --port 7777
//   printf 'hello\n' | nc -q1 127.0.0.1 7777
//
// As a service of systemd with a .socket unit it takes the socket of that, and --bind and --port do not count. It stops
// on SIGINT or SIGTERM, and then says what it has served.

#include "program.hpp"

#include <ulexite/net/inherited.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/task_group.hpp>

#include <CLI/CLI.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

namespace {

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 7777;
};

struct totals {
  std::atomic<std::uint64_t> connections{0}, bytes{0};
};

// Sends back what comes, up to `size` bytes. Returns how many; 0 at the end.
template <std::size_t size>
[[gnu::noinline]] std::size_t send_back(ulexite::net::tcp_stream& peer, totals& served) {
  std::array<char, size> buffer;
  const std::size_t got = peer.read_some(buffer.data(), size);
  peer.write(buffer.data(), got);
  served.bytes.fetch_add(got, std::memory_order_relaxed);
  return got;
}

// Waits with a small buffer, because an idle connection keeps each page that its stack has touched. A peer that fills
// it gets a large one.
void echo(ulexite::net::tcp_stream& peer, totals& served) {
  served.connections.fetch_add(1, std::memory_order_relaxed);
  constexpr std::size_t small = 512, large = 16 * 1024;
  for (std::size_t last = 1; last > 0;)
    last = last < small ? send_back<small>(peer, served) : send_back<large>(peer, served);
}

ulexite::net::tcp_listener listen(const arguments& given) {
  const auto inherited = ulexite::net::inherited_descriptors();
  if (!inherited.empty()) return ulexite::net::tcp_listener::adopt(inherited.front());
  return ulexite::net::tcp_listener(ulexite::net::endpoint::ip(given.bind, given.port));
}

void serve(const arguments& given, examples::stop_signals& signals, totals& served) {
  auto listener = listen(given);
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  auto stopper = ulexite::spawn([&] {
    signals.wait();
    listener.close();
  });
  ulexite::task_group connections;
  listener.serve(connections, [&](ulexite::net::tcp_stream& peer) { echo(peer, served); });
  stopper.get();
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("--bind", given.bind, "Numeric address to listen on")->capture_default_str();
    app.add_option("--port", given.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  };
  return examples::run_program(
      argc, argv, "echo_server", "Sends back what it gets, over TCP, until it is stopped by SIGINT or SIGTERM.",
      describe, [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        totals served;
        ulexite::runtime(options).run([&] { serve(given, signals, served); });
        std::printf("served %llu connections, %llu bytes\n", static_cast<unsigned long long>(served.connections.load()),
                    static_cast<unsigned long long>(served.bytes.load()));
        return 0;
      });
}
