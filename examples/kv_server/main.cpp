// A key-value server in memory, for the clients of Redis (RESP2 and RESP3). Each connection has a fiber. The keys are
// spread over shards, each with a shared_mutex. A ticker wakes one fiber that removes expired keys.
//
//   kv_server --port 6380
//   redis-cli -p 6380 set greeting hello ex 60
//   redis-benchmark -p 6380 -t get,set -P 16
//
// It stops on SIGINT or SIGTERM: it accepts no further connections, answers the requests that have arrived, and then
// reports its totals.

#include "../bounded_log.hpp"
#include "../inspect/inspect.hpp"
#include "../program.hpp"
#include "command.hpp"
#include "session.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/ticker.hpp>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

namespace {

using namespace kv_server;
using namespace std::chrono_literals;

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 6380;
  std::size_t max_connections = 1000;
  std::size_t max_value = 1 << 20;
  std::optional<std::uint16_t> inspect;
  unsigned idle_seconds = 300;
  unsigned grace_seconds = 10;
  std::string log_level = "info";
};

void describe(CLI::App& app, arguments& given) {
  const auto add = [&app](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->capture_default_str();
  };
  add("--bind", given.bind, "Numeric address to listen on");
  add("--port", given.port, "Port to listen on; 0 takes a free one");
  examples::describe_inspect(app, given.inspect);
  add("--max-connections", given.max_connections, "Most clients at a time; others wait")->check(CLI::Range(1, 100'000));
  add("--max-value", given.max_value, "Bytes of the longest key or value; a request or reply may have four times that")
      ->check(CLI::Range(64, 64 << 20));
  add("--idle-timeout", given.idle_seconds, "Seconds that a client may say nothing, or not take a reply")
      ->check(CLI::Range(1, 86'400));
  add("--grace", given.grace_seconds, "Seconds that a stop waits for replies under way")->check(CLI::Range(0, 3600));
  add("--log-level", given.log_level, "What is logged on stderr: debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
}

void log_failure(const ulexite::net::endpoint& peer, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& error) {
    spdlog::info("event=connection_lost peer={} reason={:?}", peer.str(), error.what());
  } catch (const std::exception& error) {
    spdlog::error("event=connection_failed peer={} reason={:?}", peer.str(), error.what());
  }
}

void sweep(store& data) {
  ulexite::ticker ticks(100ms);
  for ([[maybe_unused]] const auto now : ticks.channel()) data.sweep();
}

void serve(const arguments& given, examples::stop_signals& signals, database& home) {
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip(given.bind, given.port));
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  ulexite::task_group helpers;
  helpers.spawn([&] { sweep(home.data); });
  helpers.spawn([&] {
    spdlog::info("event=stop signal={}", examples::name_of(signals.wait()));
    listener.close();
  });
  const session_limits limits{.requests = {.value = given.max_value, .request = 4 * given.max_value},
                              .idle = std::chrono::seconds(given.idle_seconds)};
  ulexite::task_group clients;
  listener.serve(clients, [&](ulexite::net::tcp_stream& client) { attend(client, home, limits); },
                 {.max_connections = given.max_connections,
                  .drain_time = std::chrono::seconds(given.grace_seconds),
                  .on_error = log_failure});
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "kv_server",
      "Keeps keys and values in memory for the clients of Redis, until it is stopped by SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        examples::bounded_log log("kv_server", STDERR_FILENO, "time=%Y-%m-%dT%H:%M:%S.%e level=%l %v");
        spdlog::set_default_logger(log.logger());
        spdlog::set_level(spdlog::level::from_str(given.log_level));
        database home;
        {
          ulexite::runtime runtime(options);
          const examples::inspection look(runtime, given.inspect);
          runtime.run([&] { serve(given, signals, home); });
        }
        examples::say_at_the_end("served " + std::to_string(home.connections.load()) + " connections, " +
                                     std::to_string(home.commands.load()) + " commands\n",
                                 log.finish());
        return 0;
      });
}
