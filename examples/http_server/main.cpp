// Serves the files of a directory over HTTP/1.1: one fiber for each connection, HTTP by Boost.Beast.
//
//   http_server DIR --port 8080
//   curl http://127.0.0.1:8080/
//
// It stops on SIGINT or SIGTERM: it accepts nobody any more, closes the connections between two requests, lets the
// requests under way finish, and then says what it has served.

#include "../stop_signals.hpp"
#include "connections.hpp"
#include "session.hpp"
#include "site.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

namespace {

using namespace http_server;

struct arguments {
  std::string directory;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;
  std::size_t threads = 0;
  unsigned idle_seconds = 30;
  unsigned grace_seconds = 10;
};

void describe(CLI::App& app, arguments& given) {
  app.add_option("DIR", given.directory, "Directory to serve")->required();
  app.add_option("--bind", given.bind, "Numeric address to listen on")->capture_default_str();
  app.add_option("--port", given.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  app.add_option("--threads", given.threads, "Most worker threads; 0: one for each CPU")->capture_default_str();
  app.add_option("--idle", given.idle_seconds, "Seconds that a client may take for its next request")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--grace", given.grace_seconds, "Seconds that a stop waits for the requests under way")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
}

void accept_all(ulexite::net::tcp_listener& listener, const site& files, const limits& limits, connections& all) {
  for (std::error_code error;;) {
    auto stream = listener.accept(error);
    if (error) return;  // closed
    all.spawn([stream = std::move(stream), &files, &limits, &all]() mutable {
      serve(std::move(stream), files, limits, all);
    });
  }
}

void run(const arguments& given, const site& files, examples::stop_signals& signals, connections& all) {
  const limits limits{.idle = std::chrono::seconds(given.idle_seconds)};
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip(given.bind, given.port));
  std::printf("serving %s on http://%s/\n", given.directory.c_str(), listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  auto acceptor = ulexite::spawn([&] { accept_all(listener, files, limits, all); });
  signals.wait();
  listener.close();
  acceptor.get();
  all.stop();
  all.wait(std::chrono::seconds(given.grace_seconds));
}

}  // namespace

int main(int argc, char** argv) try {
  arguments given;
  CLI::App app("Serves the files of a directory over HTTP/1.1 until it is stopped by SIGINT or SIGTERM.");
  describe(app, given);
  CLI11_PARSE(app, argc, argv);

  const site files(given.directory);
  examples::stop_signals signals;
  connections all;
  {
    ulexite::runtime runtime({.threads = given.threads});
    runtime.run([&] { run(given, files, signals, all); });
  }
  std::printf("served %llu requests on %llu connections\n", static_cast<unsigned long long>(all.requests.load()),
              static_cast<unsigned long long>(all.accepted.load()));
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "http_server: %s\n", failure.what());
  return 1;
}
