// Who is online: clients join under a name, and watch others. Nearly all connections are idle nearly all of the time,
// so each is a coroutine, which has a stack only while it runs.
//
//   presence --port 7200 --history changes
//   nc 127.0.0.1 7200
//     JOIN ann         OK                  from now on ann is online, until the connection ends
//     WATCH bob        OFFLINE bob         his state, and then a line for each change: ONLINE bob, OFFLINE bob
//     SAY hello        OK                  those who watch ann get SAID ann hello
//     UNWATCH bob      OK
//     PING             PONG
//
// Several connections may have one name. A client that leaves too much unread is dropped, and delays nobody. It stops
// on SIGINT or SIGTERM: the clients get BYE, and it reports its work.

#include "../program.hpp"
#include "session.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <CLI/CLI.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace {

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 7200;
  std::size_t max_clients = 0;
  std::string history;
  presence::limits bounds;
};

void describe(CLI::App& app, arguments& given) {
  const auto add = [&app](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->capture_default_str();
  };
  add("--bind", given.bind, "Numeric address to listen on");
  add("--port", given.port, "Port to listen on; 0 takes a free one");
  add("--max-clients", given.max_clients,
      "Most clients at a time; others wait; 0: what the limit of descriptors allows");
  add("--max-line", given.bounds.line, "Most bytes of a command")->check(CLI::Range(16, 4096));
  add("--max-outbox", given.bounds.outbox, "Bytes that a client may leave unread")->check(CLI::Range(1024, 16 << 20));
  add("--max-watched", given.bounds.watched, "Names that one client may watch")->check(CLI::Range(1, 1'000'000));
  app.add_option("--history", given.history, "File to which each change is appended, with its time");
}

// Each client is a descriptor, and the soft limit is 1024 as a rule. Returns the number of clients that fit under the
// hard limit.
std::size_t raise_descriptor_limit() {
  constexpr rlim_t others = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::system_error(errno, std::system_category(), "setrlimit");
  return std::max<std::size_t>(limit.rlim_cur - std::min(others, limit.rlim_cur), 1);
}

// An ordinary fiber: it waits for the disk. Until `changes` is closed.
void write_history(ulexite::channel<std::string>& changes, ulexite::os::file file) {
  while (auto text = changes.receive()) {
    std::string next;
    while (text->size() < 64 * 1024 && changes.try_receive(next) == ulexite::channel_status::ok) *text += next;
    std::error_code error;
    file.append(text->data(), text->size(), error);
    if (error) std::fprintf(stderr, "presence: the history lacks changes: %s\n", error.message().c_str());
  }
}

std::string run(const arguments& given, examples::stop_signals& signals) {
  const std::size_t room = raise_descriptor_limit();
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip(given.bind, given.port));
  ulexite::channel<std::string> changes(4096);
  ulexite::task_group helpers;
  if (!given.history.empty()) {
    using enum ulexite::os::open_mode;
    helpers.spawn(write_history, std::ref(changes), ulexite::os::file(given.history, write | create | append));
  }
  helpers.spawn([&] {
    signals.wait();
    listener.close();
  });
  std::printf("listening on %s\n", listener.local_endpoint().str().c_str());
  std::fflush(stdout);

  presence::home home{.bounds = given.bounds,
                      .people = presence::directory(given.history.empty() ? nullptr : &changes)};
  const std::size_t most = given.max_clients > 0 ? std::min(given.max_clients, room) : room;
  helpers.spawn(presence::serve, std::ref(listener), std::ref(home), most).get();
  changes.close();
  helpers.wait();
  return "served " + std::to_string(home.served.load()) + " clients, dropped " +
         std::to_string(presence::client::dropped.load()) + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "presence", "Tells clients who of those that they watch is online, until SIGINT or SIGTERM.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ulexite::runtime_options& options) {
        const std::string report = ulexite::runtime(options).run([&] { return run(given, signals); });
        std::fputs(report.c_str(), stdout);
        return 0;
      });
}
