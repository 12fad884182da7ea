// A durable queue of jobs on redis: workers may die at any time, and no job is lost or has its effect twice.
//
//   redis-server --appendonly yes --appendfsync always --port 6379 &
//   seq 1000 | jobs put 127.0.0.1:6379
//   jobs work 127.0.0.1:6379 --concurrency 16 --metrics 9100 &      # several; kill -9 one
//   jobs dead 127.0.0.1:6379                                        # jobs that were given up; --again returns them
//
// With the default, --appendfsync everysec, redis may answer before it has written. If it is killed while its disk is
// busy, it loses what it has acknowledged in up to two seconds.
//
// A line of input is NAME [MILLISECONDS [KIND]]. A job sleeps, and adds its milliseconds to a total; its name is the
// key of the ledger, in redis or, with --database CONNINFO, in PostgreSQL. KIND: ok; fail (always), flaky (fails
// twice), crash (kills its process), to try what happens then.
//
// A worker stops on SIGINT or SIGTERM: jobs under way have some seconds, then others get them. It runs below a service
// manager (docs/deploying.md), and is ready when redis and the ledger are there.

#include "../program.hpp"
#include "../service.hpp"
#include "worker.hpp"

#include <ulexite/interop/http.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>

#include <unistd.h>

#include <charconv>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace {

namespace ux = ulexite;
namespace http = ulexite::http;
using namespace std::chrono_literals;

struct arguments {
  std::string redis = "127.0.0.1:6379", database;
  long backlog = 10'000;
  jobs::queue_options queue;
  jobs::worker_options worker;
  std::optional<std::uint16_t> metrics;
  std::string bind = "127.0.0.1";
  bool again = false;
  CLI::App *put = nullptr, *work = nullptr, *dead = nullptr;
};

void describe(CLI::App& app, arguments& given) {
  app.require_subcommand(1);
  given.put = app.add_subcommand("put", "Put jobs: a line of standard input each, NAME [MILLISECONDS [KIND]]");
  given.work = app.add_subcommand("work", "Do jobs, until SIGINT or SIGTERM");
  given.dead = app.add_subcommand("dead", "Print the jobs that were given up");
  for (CLI::App* const each : {given.put, given.work, given.dead})
    each->fallthrough()->add_option("REDIS", given.redis, "HOST:PORT, or unix:PATH")->required();
  given.put->add_option("--backlog", given.backlog, "Wait while so many jobs are to be done")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  given.work->add_option("--database", given.database, "Keep the ledger in PostgreSQL: a connection string of libpq");
  given.work->add_option("--concurrency", given.worker.concurrency, "Most jobs at a time")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  given.work->add_option("--metrics", given.metrics, "Serve /metrics, /livez and /readyz on this port; 0: a free one");
  given.work->add_option("--bind", given.bind, "Numeric address for --metrics")->capture_default_str();
  const auto add_time = [&](const char* name, auto& time, long least, const std::string& what) {
    given.work
        ->add_option_function<long>(
            name, [&time](long count) { time = std::decay_t<decltype(time)>(count); }, what)
        ->check(CLI::Range(least, 1'000'000'000L))
        ->default_str(std::to_string(time.count()));
  };
  add_time("--silence", given.queue.silence, 100, "Milliseconds without a sign of a worker until others take its jobs");
  add_time("--grace", given.worker.grace, 0, "Milliseconds that jobs under way have after a signal");
  add_time("--keep", given.queue.keep, 1, "Seconds that the ledger keeps the name of a job");
  given.dead->add_flag("--again", given.again, "Put them back");
}

jobs::job job_of_line(const std::string& line) {
  std::istringstream words(line);
  jobs::job made;
  std::string number, rest;
  words >> made.name;
  if (words >> number) {
    constexpr long day = 24 * 3600 * 1000;
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, made.milliseconds);
    if (error != std::errc() || end != last || made.milliseconds < 0 || made.milliseconds > day)
      throw std::invalid_argument("\"" + number + "\" is no number of milliseconds from 0 to " + std::to_string(day));
  }
  if (std::string kind; words >> kind) made.kind = kind;
  if (made.kind != "ok" && made.kind != "fail" && made.kind != "flaky" && made.kind != "crash")
    throw std::invalid_argument("\"" + made.kind + "\" is none of ok, fail, flaky, crash");
  if (words >> rest) throw std::invalid_argument("\"" + rest + "\" is one word too many");
  return made;
}

std::string name_of_this_process() {
  std::string host(256, '\0');
  ::gethostname(host.data(), host.size() - 1);
  // Numbers of processes come again, in containers too.
  return host.c_str() + ("." + std::to_string(::getpid()) + ".") +
         std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
}

void put(const arguments& given, jobs::queue& to) {
  std::atomic<long> added{0}, waits{0};
  ux::task_group adding(ux::on_error::cancel_siblings, 32);
  const auto add = [&](const jobs::job& what) {
    for (; !to.add(what, given.backlog); ++waits) ux::this_fiber::sleep_for(20ms);
    ++added;
  };
  std::string wrong, line;
  for (long number = 1; adding.failures() == 0; ++number) {
    if (!ux::blocking([&] { return bool(std::getline(std::cin, line)); })) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      adding.spawn([&add, what = job_of_line(line)] { add(what); });
    } catch (const std::invalid_argument& why) {
      wrong = "line " + std::to_string(number) + " of the input: " + why.what() + "; only the lines before it were put";
      break;
    }
  }
  adding.wait();
  std::printf("put %ld jobs, found the backlog full %ld times\n", added.load(), waits.load());
  if (!wrong.empty()) throw std::invalid_argument(wrong);
}

http::response answer(const http::request& asked, jobs::queue& from, const jobs::worker& at,
                      const examples::managed_service& life) {
  if (const auto probe = life.probe(http::view(asked.method_string()), asked.path()))
    return {static_cast<http::status>(probe->status), std::string(probe->text)};
  if (asked.path() != "/metrics") return {http::status::not_found, "there are /metrics, /livez and /readyz\n"};
  std::ostringstream body;
  jobs::write_metrics(body, ux::timeout(2s, [&] { return from.state(); }), at.counts());
  ux::current_runtime().write_prometheus(body);
  return {http::status::ok, body.str()};
}

void work(const arguments& given, jobs::queue& from, examples::managed_service& life) {
  std::optional<jobs::ledger> book;
  if (!given.database.empty()) book.emplace(given.database);
  jobs::worker here(from, book ? &*book : nullptr, given.worker);
  std::optional<ux::net::tcp_listener> listener;
  if (given.metrics) listener.emplace(ux::net::endpoint::ip(given.bind, *given.metrics));

  ux::event stop;
  ux::task_group starting, around;
  if (listener) {
    std::printf("metrics on http://%s/metrics\n", listener->local_endpoint().str().c_str());
    std::fflush(stdout);
    around.spawn([&] {
      http::serve(*listener, [&](const http::request& asked) { return answer(asked, from, here, life); },
                  {.drain_time = 1s});
    });
  }
  const auto end = [&] {
    stop.set();
    starting.request_stop();
  };
  life.run(end, [&] {
    starting.spawn([&] { here.start(); });
    starting.wait();
    if (stop.is_set()) {
      std::fprintf(stderr, "jobs: stopped before redis and the ledger were there\n");
      return;
    }
    std::printf("working\n");
    std::fflush(stdout);
    life.tell_ready();
    const bool clean = here.run([&] { stop.wait(); });
    const jobs::counters& all = here.counts();
    std::printf("done %ld, repeated %ld, failed %ld, dead %ld, claimed %ld, given back %ld%s\n", all.done.load(),
                all.repeated.load(), all.failed.load(), all.dead.load(), all.claimed.load(), all.given_back.load(),
                clean ? "" : "; others will take what is pending");
  });
}

void dead(const arguments& given, jobs::queue& from) {
  for (const auto& [what, why] : from.dead_jobs()) {
    std::printf("%s %ld %s: %s\n", what.name.c_str(), what.milliseconds, what.kind.c_str(), why.c_str());
    if (given.again) from.revive(what);
  }
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "jobs", "A durable queue of jobs on redis.", [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ux::runtime_options& options) {
        std::optional<examples::managed_service> life;
        if (*given.work) {
          life.emplace(signals, examples::service_options{});
        } else {
          signals.release();
        }
        ux::runtime(options).run([&] {
          jobs::queue all(ux::net::address::parse(given.redis), name_of_this_process(), given.queue);
          if (*given.put) put(given, all);
          if (life) work(given, all, *life);
          if (*given.dead) dead(given, all);
        });
        return 0;
      });
}
