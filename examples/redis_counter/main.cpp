// Counters over HTTP, which a redis-server keeps: one fiber for each client, a few connections to redis for all.
//
//   redis-server --port 6379 &
//   redis_counter --port 8080 --redis 127.0.0.1:6379 --pool 8 --timeout 2000
//   curl -X POST http://127.0.0.1:8080/counters/visits                # {"name":"visits","value":1}
//   curl -X POST 'http://127.0.0.1:8080/counters/visits?by=10'        # or -d by=10
//   curl http://127.0.0.1:8080/counters/visits                        # 404 if there is none; -X DELETE removes it
//   curl http://127.0.0.1:8080/counters                               # all
//   curl http://127.0.0.1:8080/healthz                                # whether redis answers
//
// Without redis, requests wait for it as long as --timeout says, and are then answered with 503. A change is never sent
// twice. If the connection ends (502) or the time is over (504) before redis has replied, the answer says that the
// outcome is unknown. When redis is back, the service works again.
//
// It stops on SIGINT or SIGTERM: it accepts no further connections, answers the requests under way, and then reports
// its totals.

#include "../bounded_log.hpp"
#include "../program.hpp"
#include "counters.hpp"
#include "routes.hpp"

#include <ulexite/interop/http_server.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace {

using namespace redis_counter;

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string redis = "127.0.0.1:6379";
  std::size_t pool = 8;
  unsigned timeout_ms = 2000;
  unsigned drain_seconds = 10;
  bool verbose = false;
};

void describe(CLI::App& app, arguments& given) {
  app.add_option("--bind", given.bind, "Numeric address to listen on")->capture_default_str();
  app.add_option("--port", given.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  app.add_option("--redis", given.redis, "Where redis is: HOST:PORT, or unix:PATH")->capture_default_str();
  app.add_option("--pool", given.pool, "Most connections to redis")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--timeout", given.timeout_ms, "Milliseconds that a request may wait for redis")
      ->check(CLI::Range(1, 600'000))
      ->capture_default_str();
  app.add_option("--drain", given.drain_seconds, "Seconds that a stop waits for the requests under way")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_flag("--verbose", given.verbose, "Log every request");
}

// Logs that redis cannot be reached, or can be again.
void note_redis(const std::string& name, std::string_view why) {
  if (why.empty())
    spdlog::info("connected again redis={}", name);
  else
    spdlog::warn("cannot connect redis={} error=\"{}\"", name, why);
}

// Returns the last message.
std::string run(const arguments& given, const ulexite::net::address& redis, examples::stop_signals& signals) {
  const std::chrono::milliseconds limit(given.timeout_ms);
  redis::pool connections(redis, {.size = given.pool,
                                  .acquire_time = limit,
                                  .connection = {.patience = limit},
                                  .on_change = [name = redis.str()](std::string_view why) { note_redis(name, why); }});
  counters all(connections);
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip(given.bind, given.port));
  std::atomic<std::uint64_t> answered{0};
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);
  auto stopper = ulexite::spawn([&] {
    spdlog::info("stopping signal={}", examples::name_of(signals.wait()));
    listener.close();
  });
  http::serve(
      listener,
      [&](const http::request& asked) {
        spdlog::debug("request method={} target={}", http::view(asked.method_string()), http::view(asked.target()));
        return answer(asked, all, limit);
      },
      {.limits = {.header_size = 8 * 1024, .body_size = 4 * 1024},
       .drain_time = std::chrono::seconds(given.drain_seconds),
       .refuse = [](const http::exchange&, http::status code, const std::string& why) { return with_error(code, why); },
       .on_end = [&](const http::exchange& of) { answered += of.ended(); }});
  stopper.get();
  return "served " + std::to_string(answered.load()) + " requests over " + std::to_string(connections.connects()) +
         " connections to redis\n";
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "redis_counter", "Counters over HTTP, which a redis-server keeps. Stopped by SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        const auto redis = ulexite::net::address::parse(given.redis);
        examples::bounded_log log("redis_counter", STDERR_FILENO, "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
        spdlog::set_default_logger(log.logger());
        spdlog::set_level(given.verbose ? spdlog::level::debug : spdlog::level::info);
        const std::string served = ulexite::runtime(options).run([&] { return run(given, redis, signals); });
        examples::say_at_the_end(served, log.finish());
        return 0;
      });
}
