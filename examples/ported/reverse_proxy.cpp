// A reverse proxy for HTTP/1.1, after Go's httputil.ReverseProxy behind an http.Server. A new process can replace it
// without losing a request: it asks the old one for its listener, over a Unix socket.
//
//   reverse_proxy --listen 127.0.0.1:8000 --to 127.0.0.1:8080 --to 127.0.0.1:8081 --control /run/proxy.sock
//
// The same command again takes the listener over. The old process answers what it has, tells its clients to close, and
// ends; so it does on SIGTERM and SIGINT. If the old process dies meanwhile, the new one serves without it.
//
// Requests and answers pass in blocks, as they come, in both directions at once. So a connection holds some 350 KiB at
// most, and --max-connections bounds the memory.

#include "../program.hpp"
#include "../request_context.hpp"
#include "hand_over.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/http.hpp>

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ux = ulexite;
namespace http = ux::http;
using namespace std::chrono_literals;

namespace {

constexpr auto time_for_request = 60s, time_for_answer = 30s;  // of the client, and of the backend after that
constexpr auto patience = 60s;                                 // with a side that takes, or gives, a block

struct arguments {
  std::string listen = "127.0.0.1:8000";
  std::vector<std::string> to;
  std::string control;
  int drain_seconds = 10;
  std::size_t max_connections = 500;
};

// Shared by all connections.
struct proxy {
  std::vector<http::url> backends{};
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> answered{0};
};

// Returns act(), which waits for a backend. Its failure is the client's answer, or cuts an answer that has begun.
template <class F>
auto of_backend(F&& act) try {
  return act();
} catch (const ux::deadline_exceeded&) {
  throw http::refusal(http::status::gateway_timeout, "the backend is too slow");
} catch (const ux::operation_cancelled&) {
  throw;
} catch (const std::system_error&) {
  throw http::refusal(http::status::bad_gateway, "no backend answers");
}

// RFC 9112, 3.2.2: "http://host/path" replaces Host, and is "/path" to the backend.
void take_host_of_target(http::request& asked) try {
  const std::string_view target = http::view(asked.target());
  if (target.starts_with('/') || target == "*") return;
  const http::url whole = http::url::parse(target);
  asked.set(http::field::host, whole.authority);
  asked.target(whole.target);
} catch (const std::invalid_argument&) {
  throw http::refusal(http::status::bad_request, "the target is no path, and names no host of HTTP");
}

// What all requests of a client share. The connection to a backend is kept as long as that of the client.
class visit {
 public:
  visit(proxy& home, const ux::net::tcp_stream& client, const std::stop_token& draining)
      : home_(home), draining_(draining), peer_(client.remote_endpoint().str()) {
    peer_.resize(peer_.rfind(':'));
  }

  // Sends a request to a backend, and passes its answer on, which may begin before the request has ended.
  void pass_on(http::exchange& now) {
    const http::request asked = outgoing(now);
    if (now.is_whole()) {
      http::reply got = ask(asked, [&] { return client_.open(at_, asked); });
      return pass_answer_on(got, now);
    }
    http::reply got = ask(asked, [&] { return client_.begin(at_, asked, now.body_size()); });
    now.ask_for_body();
    ux::scope([&](ux::task_group& upload) {
      upload.spawn([&] { pass_body_on(now, got); });
      of_backend([&] { ux::timeout(time_for_request + time_for_answer, [&] { got.read_header(); }); });
      pass_answer_on(got, now);
      upload.request_stop();
    });
  }

 private:
  // The request as the backend gets it, but for its body.
  http::request outgoing(http::exchange& now) const {
    http::request made = now.request();
    const bool is_old = made.version() < 11, is_tunnel = made.method() == http::verb::connect;
    // A proxy must not keep a connection of HTTP/1.0: RFC 9112, 9.3. What follows CONNECT would be no HTTP.
    if (is_old || is_tunnel) now.make_last();
    if (is_tunnel) throw http::refusal(http::status::not_implemented, "this proxy makes no tunnels");
    if (made.method() == http::verb::trace && !now.is_whole())
      throw http::refusal(http::status::bad_request, "TRACE has no body");
    http::erase_hop_fields(made);
    if (made.count(http::field::host) == 0) made.set(http::field::host, "");  // of HTTP/1.0; HTTP/1.1 needs one
    take_host_of_target(made);
    made.set("X-Forwarded-For", peer_);
    made.insert(http::field::via, is_old ? "1.0 reverse_proxy" : "1.1 reverse_proxy");  // RFC 9110, 7.6.3
    const examples::request_scope within;  // the proxy is a span of its own in the client's trace
    examples::begin_request([&](const char* name) { return http::value(now.request(), name); });
    examples::pass_request([&](const char* name, std::string_view value) { made.set(name, value); });
    return made;
  }

  // Returns send(), with a connection to the backend of the last request, or to the next that accepts.
  template <class F>
  http::reply ask(const http::request& asked, F&& send) {
    return of_backend([&] {
      for (std::size_t left = home_.backends.size() + (at_.host.empty() ? 0 : 1);;) {
        if (at_.host.empty()) at_ = home_.backends[home_.next++ % home_.backends.size()];
        at_.target = http::view(asked.target());
        try {
          return ux::timeout(time_for_answer, send);
        } catch (const http::not_connected&) {
          at_ = {};
          if (--left == 0) throw;
        }
      }
    });
  }

  // Until the backend takes no more: it may have answered.
  static void pass_body_on(http::exchange& now, http::reply& to) {
    for (std::string_view part = now.read_some(); !part.empty(); part = now.read_some())
      if (!of_backend([&] { return ux::timeout(patience, [&] { return to.write(part); }); })) return;
    to.end();
  }

  void pass_answer_on(http::reply& got, http::exchange& now) {
    if (got.header().result() == http::status::switching_protocols)
      throw http::refusal(http::status::bad_gateway, "the backend changes the protocol unasked");
    boost::beast::http::response_header<> header = got.header();
    http::erase_hop_fields(header);
    header.version(11);  // the proxy's own, as in each message that it sends
    if (!now.is_whole() || draining_.stop_requested()) now.make_last();  // the client connects again
    now.begin(header);
    if (!got.has_part()) now.flush();  // the header does not wait for the body
    for (;;) {
      const std::string_view part = of_backend([&] { return ux::timeout(patience, [&] { return got.read_some(); }); });
      if (part.empty()) break;
      now.write(part);
    }
    now.end();
    ++home_.answered;
  }

  proxy& home_;
  const std::stop_token& draining_;
  std::string peer_;
  http::client client_{{.user_agent = "", .idle_connections = 1, .connect_time = 5s}};
  http::url at_;  // of the backend; without a host there is none yet
};

void serve(const arguments& given, examples::stop_signals& signals) {
  proxy home;
  for (const std::string& each : given.to) {
    const auto at = ux::net::address::parse(each);
    if (at.host().empty()) throw std::invalid_argument("--to " + each + ": a backend is HOST:PORT");
    home.backends.push_back({.host = at.host(), .port = at.port(), .authority = at.str(), .target = "/"});
  }
  ux::net::unix_stream before;
  std::optional<ux::net::tcp_listener> adopted;
  if (!given.control.empty()) adopted = hand_over::ask_for_listener(given.control, before);
  ux::net::tcp_listener listener = adopted ? std::move(*adopted) : hand_over::when_free([&] {
    return ux::net::tcp_listener::listen(ux::net::address::parse(given.listen));
  });
  std::fprintf(stderr, "%s %s\n", before.is_open() ? "took over" : "listening on",
               listener.local_endpoint().str().c_str());
  const http::server_options how{.limits = {.idle_time = time_for_request,
                                            .header_time = time_for_request,
                                            .body_time = time_for_request,
                                            .write_time = patience,
                                            .linger_time = 2s,
                                            .least_rate = 0,
                                            .header_size = 8 << 10,
                                            .body_size = 8 << 20}};
  ux::scope([&](ux::task_group& group) {
    group.spawn([&] {
      ux::task_group connections;
      listener.serve(connections,
                     [&](ux::net::tcp_stream& client, const std::stop_token& draining) {
                       visit here(home, client, draining);
                       // Without the token: an idle client may be about to ask, and is answered once more.
                       http::serve_connection(client, {}, [&](http::exchange& now) { here.pass_on(now); }, how);
                     },
                     {.max_connections = given.max_connections,
                      .descriptors_per_connection = 2,  // its own and a backend's
                      .drain_time = std::chrono::seconds(given.drain_seconds)});
    });
    if (before.is_open()) hand_over::tell_that_this_serves(before);  // from now on both accept
    ux::net::unix_listener control;
    if (!given.control.empty()) control = hand_over::listen_for_next(given.control);
    bool given_away = false;
    const auto ending = ux::when_any([&] { return signals.wait(); },
                                     [&] {
                                       if (!control.is_open())
                                         ux::this_fiber::sleep_until(ux::steady_clock::time_point::max());
                                       hand_over::give(control, listener, given_away);
                                     });
    std::fprintf(stderr, "%s\n", ending.index == 0 ? "stopping" : "handed over");
    if (ending.index == 1) signals.release();
    if (given_away)
      ::close(listener.release());  // the connections in the backlog are the new process's
    else
      listener.close();
  });
  std::fprintf(stderr, "answered %ju requests\n", static_cast<std::uintmax_t>(home.answered));
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("--listen", given.listen, "Where clients connect: HOST:PORT")->capture_default_str();
    app.add_option("--to", given.to, "A backend: HOST:PORT; may be given again")->required();
    app.add_option("--control", given.control, "Path of the socket over which a new process takes over");
    app.add_option("--drain", given.drain_seconds, "Seconds that the connections have at the end")
        ->check(CLI::Range(0, 3600))
        ->capture_default_str();
    app.add_option("--max-connections", given.max_connections,
                   "Most at a time, others wait; 0: what the limit of descriptors allows. Each takes two")
        ->check(examples::not_negative)
        ->capture_default_str();
  };
  return examples::run_program(argc, argv, "reverse_proxy", "Forwards HTTP requests to backends, in turn.", describe,
                               [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 ux::runtime(options).run([&] { serve(given, signals); });
                                 return 0;
                               });
}
