// Forwards connections to another server: two fibers for each connection, one for each direction.
//
//   tcp_proxy --listen 127.0.0.1:7000 --to 127.0.0.1:8080
//   curl http://127.0.0.1:7000/
//
// Both ends may be Unix sockets: unix:/path. The end of one direction is passed on while the other goes on; a broken
// connection breaks both sides. It logs a line on stderr for each connection at its end.
//
// On SIGINT or SIGTERM it accepts no further connections. It lets the transfers under way finish, up to --drain seconds
// or a second signal. The rest is reset.

#include "../bounded_log.hpp"
#include "../program.hpp"
#include "session.hpp"

#include <ulexite/net/address.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/task_group.hpp>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>
#include <vector>

namespace {

namespace ux = ulexite;
using namespace tcp_proxy;

struct arguments {
  std::string listen = "127.0.0.1:7000", to;
  unsigned connect_seconds = 10, idle_seconds = 300, drain_seconds = 30;
  std::size_t max_connections = 500;
};

void describe(CLI::App& app, arguments& given) {
  const CLI::Range seconds(0, 86400), positive(1, 86400);
  app.add_option("--listen", given.listen, "Where to listen: HOST:PORT, port 0 takes a free one, or unix:PATH")
      ->capture_default_str();
  app.add_option("--to", given.to, "Upstream: HOST:PORT or unix:PATH; a name is resolved once, at the start")
      ->required();
  app.add_option("--connect-timeout", given.connect_seconds, "Seconds that the upstream may take to accept")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--idle-timeout", given.idle_seconds, "Seconds without a byte in either direction; 0: no limit")
      ->check(seconds)
      ->capture_default_str();
  app.add_option("--drain", given.drain_seconds, "Seconds that a stop waits for the connections")
      ->check(seconds)
      ->capture_default_str();
  app.add_option("--max-connections", given.max_connections,
                 "Most at a time, others wait; 0: what the limit of descriptors allows. Each takes two")
      ->check(examples::not_negative)
      ->capture_default_str();
}

void log_failure(const ux::net::endpoint& peer, const std::exception_ptr& failure) try {
  std::rethrow_exception(failure);
} catch (const std::exception& error) {
  spdlog::error("failed peer={:?} error={:?}", peer.str(), error.what());
}

void serve(const arguments& given, const settings& settings, examples::stop_signals& signals, totals& served) {
  auto listener = ux::net::tcp_listener::listen(ux::net::address::parse(given.listen));
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  ux::task_group connections;
  const auto stop = [&] {
    signals.channel().receive();
    spdlog::info("stopping connections={} drain={}", connections.size(), given.drain_seconds);
    listener.close();
    signals.channel().receive();
    connections.request_stop();
  };
  ux::scope([&](ux::task_group& stopper) {
    stopper.spawn(stop);
    // The handler takes the token, and does not use it. Without the parameter a stop would end the reads of all
    // clients, and the upstreams would take a cut transfer for a complete one.
    listener.serve(connections,
                   [&](ux::net::tcp_stream& client, const std::stop_token&) { forward(client, settings, served); },
                   {.max_connections = given.max_connections,
                    .descriptors_per_connection = 2,
                    .drain_time = std::chrono::seconds(given.drain_seconds),
                    .on_error = log_failure});
    stopper.request_stop();
  });
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "tcp_proxy", "Forwards connections to another server until it is stopped by SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ux::runtime_options& options) {
        const settings settings{.upstream = given.to,
                                .upstreams = ux::net::address::parse(given.to).resolve(),
                                .connect_timeout = std::chrono::seconds(given.connect_seconds),
                                .idle_timeout = std::chrono::seconds(given.idle_seconds)};
        examples::bounded_log log("tcp_proxy", STDERR_FILENO, "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
        spdlog::set_default_logger(log.logger());
        totals served;
        ux::runtime(options).run([&] { serve(given, settings, signals, served); });
        examples::say_at_the_end("served " + std::to_string(served.connections.load()) + " connections, " +
                                     std::to_string(served.bytes.load()) + " bytes\n",
                                 log.finish());
        return 0;
      });
}
