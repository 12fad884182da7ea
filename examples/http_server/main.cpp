// Serves the files of a directory over HTTP/1.1 or HTTPS: one fiber for each connection, HTTP by Boost.Beast, TLS by
// OpenSSL.
//
//   http_server DIR --port 8080 --access-log -
//   curl http://127.0.0.1:8080/
//
//   openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost -keyout key.pem -out cert.pem
//   http_server DIR --port 8443 --cert cert.pem --key key.pem
//   curl --cacert cert.pem https://localhost:8443/
//
// /hello, /upload and /echo are programs (programs.hpp); --help lists the limits for clients.
//
// It stops on SIGINT or SIGTERM: it accepts no further connections, ends connections between two requests, and lets
// requests under way finish. Then it reports its totals. SIGHUP reads the certificate and the file of --config again.
// It takes systemd's socket, and answers the probes /livez and /readyz: see docs/deploying.md, and deploy/ here.

#include "../inspect/inspect.hpp"
#include "../program.hpp"
#include "../service.hpp"
#include "arguments.hpp"
#include "certificate.hpp"
#include "session.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

namespace {

using namespace http_server;
using namespace std::chrono_literals;

void announce(const arguments& given, const ulexite::net::endpoint& at) {
  std::printf("serving %s on %s://%s/\n", given.directory.c_str(), given.certificate.empty() ? "http" : "https",
              at.str().c_str());
  std::printf("listening on %s\n", at.str().c_str());
  std::fflush(stdout);
}

settings settings_of(const arguments& given) {
  settings made{.bounds = given.bounds};
  if (!given.certificate.empty()) made.tls.emplace(tls_of(given.certificate, given.key));
  return made;
}

void run(const arguments& given, examples::managed_service& life, service& shared) {
  auto listener = examples::listener_of_manager_or(ulexite::net::endpoint::ip(given.bind, given.port));
  announce(given, listener.local_endpoint());
  ulexite::task_group connections;
  life.run(listener, [&] {
    listener.serve(
        connections,
        [&](ulexite::net::tcp_stream& tcp, const std::stop_token& closing) { return serve(tcp, closing, shared); },
        {.max_connections = given.max_connections,
         .descriptors_per_connection = 2,  // its own and a file's
         .drain_time = given.grace_time,
         // Who has connected last may take as long for a first request as a balancer to notice the stop.
         .grace = std::max<std::chrono::nanoseconds>(100ms, given.drain_delay)});
  });
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "http_server",
      "Serves the files of a directory over HTTP/1.1 or HTTPS until it is stopped by SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        const site files(given.directory);
        examples::reloadable<settings> current([&] { return settings_of(read_again(argc, argv)); });
        examples::managed_service life(signals, {.drain_delay = given.drain_delay,
                                                 .reload = [&] { current.reload(); },
                                                 .log =
                                                     [&](const auto& event, const auto& why) {
                                                       if (event != "stopping") say_event(given.format, event, why);
                                                     }});
        access_log log(given.access_log, given.format);
        service shared{.files = files, .current = current, .life = life, .log = log};
        {
          ulexite::runtime runtime(options);
          const examples::inspection look(runtime, given.inspect);
          runtime.run([&] { run(given, life, shared); });
        }
        const std::size_t lost_lines = log.finish();
        examples::say_at_the_end("served " + std::to_string(shared.requests.load()) + " requests on " +
                                     std::to_string(shared.connections.load()) + " connections\n",
                                 lost_lines);
        return 0;
      });
}
