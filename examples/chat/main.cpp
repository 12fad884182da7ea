// Chat rooms over websockets, and the page for them: two fibers for each member, HTTP and websockets by Boost.Beast.
//
//   chat --port 8080
//   chat --port 8081 --redis localhost:6379      # several of these are one server
//   chat --port 8082 --nats nats://localhost     # or of these
//
// and then open http://127.0.0.1:8080/ twice. rooms.hpp describes the protocol. There are no accounts: every user that
// knows the address may talk, under any name.
//
// It stops on SIGINT or SIGTERM: it notifies the members (close code 1001), and waits until they have left. SIGHUP
// reads the file of --page again. It takes systemd's socket, and answers /livez and /readyz (docs/deploying.md). The
// log is JSON, a line each, on stderr.

#include "../bounded_log.hpp"
#include "../inspect/inspect.hpp"
#include "../program.hpp"
#include "../service.hpp"
#include "http.hpp"
#include "log.hpp"
#include "page.hpp"
#include "relay.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

using namespace chat;
using namespace std::chrono_literals;

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;
  std::optional<std::uint16_t> inspect;
  std::size_t max_connections = 1000;
  std::string redis, nats;
  std::string page;
  std::string log_level = "info";
  std::chrono::seconds drain_delay{0};
  chat::limits limits;
};

void describe(CLI::App& app, arguments& given) {
  limits& limits = given.limits;
  app.add_option("--bind", given.bind, "Numeric address to listen on")->capture_default_str();
  app.add_option("--port", given.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  examples::describe_inspect(app, given.inspect);
  app.add_option("--max-connections", given.max_connections,
                 "Most connections at a time; others wait; 0: what the limit of descriptors allows")
      ->check(examples::not_negative)
      ->capture_default_str();
  app.add_option("--redis", given.redis, "HOST:PORT or unix:PATH of the redis that connects several servers");
  app.add_option("--nats", given.nats, "URL of the nats-server that connects several servers")->excludes("--redis");
  app.add_option("--page", given.page, "File to serve as the page, instead of the one within");
  app.add_option("--room-limit", limits.room_members, "Most members of a room")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--max-message", limits.message_size, "Most bytes of a message")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-rate", limits.messages_a_second, "Most messages of a member in a second")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option_function<unsigned>(
         "--idle", [&limits](unsigned seconds) { limits.idle = std::chrono::seconds(seconds); },
         "Seconds without a sign of life after which a member is gone")
      ->check(CLI::Range(1, 3600))
      ->default_str("60");
  app.add_option_function<unsigned>(
         "--drain-delay", [&given](unsigned seconds) { given.drain_delay = std::chrono::seconds(seconds); },
         "Seconds between a stop and the close of the listener, in which /readyz answers 503")
      ->check(CLI::Range(0, 3600))
      ->default_str("0");
  app.add_option("--log-level", given.log_level, "What is logged on stderr")
      ->check(CLI::IsMember({"info", "warn", "error", "off"}))
      ->capture_default_str();
}

std::string read_page(const std::string& path) {
  if (path.empty()) return embedded_page;
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) throw std::runtime_error("cannot read the page " + path);
  return text;
}

void serve(const arguments& given, const examples::reloadable<std::string>& page, examples::managed_service& life) {
  ulexite::channel<news> outbox(1024);
  const bool alone = given.redis.empty() && given.nats.empty();
  rooms rooms(given.limits.room_members, alone ? nullptr : &outbox);
  std::unique_ptr<relay> others;
  if (!given.redis.empty()) others = relay_over_redis(given.redis, rooms, outbox);
  if (!given.nats.empty()) others = relay_over_nats(given.nats, rooms, outbox);

  auto listener = examples::listener_of_manager_or(ulexite::net::endpoint::ip(given.bind, given.port));
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  ulexite::task_group group;
  auto relaying = group.spawn([&] {
    if (others) others->run();
  });
  ulexite::task_group connections;
  life.run(listener, [&] {
    listener.serve(connections,
                   [&](ulexite::net::tcp_stream& tcp, const std::stop_token& closing) {
                     serve_connection(tcp, closing, *page.get(), rooms, given.limits, &life);
                   },
                   {.max_connections = given.max_connections});
  });
  outbox.close();
  if (!relaying.wait_for(2s)) relaying.request_stop();
  group.wait();
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "chat", "Chat rooms over websockets, with a page at /, until it is stopped by SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        examples::reloadable<std::string> page([&] { return read_page(given.page); });
        examples::bounded_log lines("chat", STDERR_FILENO, log_pattern);
        spdlog::set_default_logger(lines.logger());
        spdlog::set_level(spdlog::level::from_str(given.log_level));
        const auto tell = [](const std::string& event, const std::string& why) {
          log(spdlog::level::info, event, {{event == "stopping" ? "signal" : "why", why}});
        };
        examples::managed_service life(
            signals, {.drain_delay = given.drain_delay, .reload = [&] { page.reload(); }, .log = tell});
        {
          ulexite::runtime runtime(options);
          const examples::inspection look(runtime, given.inspect);
          runtime.run([&] { serve(given, page, life); });
        }
        examples::say_at_the_end("", lines.finish());
        return 0;
      });
}
