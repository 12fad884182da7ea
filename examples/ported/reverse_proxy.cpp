// A reverse proxy for HTTP/1.1, after Go's httputil.ReverseProxy behind an http.Server. A new process can replace it
// without losing a request: it asks the old one for its listener, over a Unix socket.
//
//   reverse_proxy --listen 127.0.0.1:8000 --to 127.0.0.1:8080 --to 127.0.0.1:8081 --control /run/proxy.sock
//
// The same command again takes the listener over. The old process answers what it has, tells its clients to close, and
// ends; so it does on SIGTERM and SIGINT. If the old process dies meanwhile, the new one serves without it.
//
// Requests and answers pass in blocks, as they come, in both directions at once. So a connection holds some 300 KiB at
// most, and --max-connections bounds the memory.

#include "../expect_continue.hpp"
#include "../program.hpp"
#include "../write_answer.hpp"
#include "hand_over.hpp"
#include "relay.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/http_message.hpp>
#include <ulexite/interop/last_words.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ux = ulexite;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

using request = http::request<http::buffer_body>;
using response = http::response<http::buffer_body>;
using text_response = http::response<http::string_body>;
using relay::ending;

constexpr std::uint64_t largest_request = 8 << 20;
constexpr auto time_for_request = 60s, time_for_answer = 30s;  // of the client, and of the backend after that

struct arguments {
  std::string listen = "127.0.0.1:8000";
  std::vector<std::string> to;
  std::string control;
  int drain_seconds = 10;
  std::size_t max_connections = 500;
};

// Shared by all connections.
class proxy {
 public:
  explicit proxy(const arguments& given) {
    for (const std::string& each : given.to) backends_.push_back(ux::net::address::parse(each));
  }

  // Connects to the next backend that accepts.
  bool connect(ux::net::tcp_stream& upstream) {
    for (std::size_t i = 0; i < backends_.size(); ++i) {
      std::error_code error;
      upstream = ux::net::tcp_stream::connect(backends_[next_++ % backends_.size()], {.timeout = 5s}, error);
      if (!error) return true;
    }
    ux::this_fiber::check();
    return false;
  }

  void count_answer() { ++answered_; }
  [[nodiscard]] std::uint64_t answered() const { return answered_; }

 private:
  std::vector<ux::net::address> backends_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> answered_{0};
};

// What all requests of a client share. The connection to a backend is kept as long as that of the client.
struct visit {
  proxy& home;
  ux::net::tcp_stream& client_tcp;
  const std::stop_token& draining;
  ux::net::tcp_stream upstream_tcp{};
  relay::side client{client_tcp}, upstream{upstream_tcp};
  const std::string peer = client_tcp.remote_endpoint().str();

  void drop_upstream() {
    upstream_tcp = {};
    upstream.buffer.clear();
  }
};

text_response refusal(http::status status, const std::string& why) {
  text_response made(status, 11);
  made.body() = why + "\n";
  made.prepare_payload();
  return made;
}

// The answer to a request that cannot be read. Nullopt: the connection has failed or ended.
std::optional<text_response> refusal_of(const boost::system::error_code& error) {
  if (error.category() != make_error_code(http::error::bad_version).category()) return std::nullopt;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error == http::error::body_limit) return refusal(http::status::payload_too_large, "the body is too large");
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refusal(http::status::request_header_fields_too_large, "the header is too large");
  return refusal(http::status::bad_request, "the request is malformed");
}

// RFC 9112, 3.2.2: "http://host/path" replaces Host, and is "/path" to the backend. False if it is neither that nor a
// path.
bool take_host_of_target(request& asked) {
  const std::string target(asked.target());
  if (target.starts_with('/') || target == "*") return true;
  const auto slashes = target.find("://");
  if (slashes == target.npos || !(boost::beast::iequals(target.substr(0, slashes), "http") ||
                                  boost::beast::iequals(target.substr(0, slashes), "https")))
    return false;
  const auto host = slashes + 3, path = std::min(target.find_first_of("/?#", host), target.size());
  const std::string name = target.substr(host, path - host);
  if (name.empty() || !ux::http::is_host(name)) return false;
  asked.set(http::field::host, name);
  asked.target(path < target.size() && target[path] == '/' ? target.substr(path) : "/" + target.substr(path));
  return true;
}

// One request and its answer.
class exchange {
 public:
  explicit exchange(visit& of) : visit_(of) { asked_.body_limit(largest_request); }

  // Whether another request may follow.
  bool run() {
    if (!read_header()) return false;
    request header = outgoing();
    if (!take_host_of_target(header))
      return refuse(refusal(http::status::bad_request, "the target is no path, and names no host of HTTP"));
    // The backend may have closed a kept connection. Mostly that is seen here. Otherwise the backend may have received
    // the request, so only a request that changes nothing is sent again.
    if (visit_.upstream_tcp.is_open() &&
        ux::net::wait_fd(visit_.upstream_tcp.native_handle(), ux::net::interest::read, 0s) != ux::net::interest::none)
      visit_.drop_upstream();
    const bool may_repeat = visit_.upstream_tcp.is_open() && asked_.is_done() && changes_nothing(header.method());
    if (attempt(header) || (may_repeat && attempt(header))) return stays_open_;
    if (client_error_) return refuse(refusal_of(client_error_));
    return refuse(refusal(http::status::bad_gateway, why_none_));
  }

 private:
  // False: the connection has ended, or the request was refused.
  bool read_header() {
    relay::side& client = visit_.client;
    client.tcp.expires_after(time_for_request);
    boost::system::error_code error;
    while (!error && !ux::http::skip_empty_lines(client.buffer))
      client.buffer.commit(client.stream.read_some(client.buffer.prepare(4096), error));
    if (!error) http::read_header(client.stream, client.buffer, asked_, error);
    head_only_ = asked_.get().method() == http::verb::head;
    if (error) return refuse(refusal_of(error));
    try {
      ux::http::check_host_and_encoding(asked_.get());
    } catch (const ux::http::refusal& why) {
      return refuse(refusal(why.code(), why.what()));
    }
    if (asked_.get().method() == http::verb::trace && !asked_.is_done())
      return refuse(refusal(http::status::bad_request, "TRACE has no body"));
    if (asked_.get().method() == http::verb::connect)  // what follows would be no HTTP
      return refuse(refusal(http::status::not_implemented, "this proxy makes no tunnels"));
    // A proxy must not keep a connection of HTTP/1.0: RFC 9112, 9.3. The parser sees all lines of Connection, and the
    // request only the first.
    knows_chunks_ = asked_.get().version() >= 11;
    keeps_ = knows_chunks_ && asked_.keep_alive();
    received_ = asked_.is_done();
    client.tcp.expires_after(time_for_request);
    if (examples::waits_to_continue(asked_)) client.tcp.write(examples::continue_now);
    return true;
  }

  // The request's header as the backend gets it.
  [[nodiscard]] request outgoing() const {
    request made(asked_.get().base());
    relay::erase_hop_fields(made);
    made.version(11);  // the proxy's own, as in each message that it sends
    if (made.count(http::field::host) == 0) made.set(http::field::host, "");  // of HTTP/1.0; HTTP/1.1 needs one
    made.set("X-Forwarded-For", visit_.peer.substr(0, visit_.peer.rfind(':')));
    made.insert(http::field::via, knows_chunks_ ? "1.1 reverse_proxy" : "1.0 reverse_proxy");  // RFC 9110, 7.6.3
    made.keep_alive(true);
    const bool may_have_a_body = made.method() == http::verb::post || made.method() == http::verb::put;
    if (asked_.chunked())
      made.chunked(true);
    else if (asked_.content_length() || may_have_a_body)
      made.content_length(asked_.content_length().value_or(0));
    return made;
  }

  // Sends a refusal, if there is one. The next request can be read only if all of this one was.
  bool refuse(std::optional<text_response> why) {
    if (!why) return false;
    const bool stays_open = keeps_ && asked_.is_done() && !visit_.draining.stop_requested();
    why->keep_alive(stays_open);
    visit_.client_tcp.writes_expire_after(relay::patience);
    boost::system::error_code error;
    examples::write_answer(visit_.client.stream, *why, head_only_, error);
    return !error && stays_open;
  }

  // Sends the request to a backend, and passes its answer on, which may begin before the request has ended. False:
  // there was no answer.
  bool attempt(const request& header) {
    if (!visit_.upstream_tcp.is_open() && !visit_.home.connect(visit_.upstream_tcp)) return false;
    visit_.upstream_tcp.reads_expire_after(asked_.is_done() ? time_for_answer : time_for_request + time_for_answer);
    bool answered = false, sent = false;
    reusable_ = false;
    ux::scope([&](ux::task_group& upload) {
      if (asked_.is_done())
        sent = send(header);
      else
        upload.spawn([&] { sent = send(header); });
      answered = pass_answer_on();
      upload.request_stop();
    });
    // Bytes behind the answer belong to no request, and would pass for the next answer.
    if (!sent || !reusable_ || visit_.upstream.buffer.size() > 0) visit_.drop_upstream();
    return answered;
  }

  // Whether the backend got all of the request. Otherwise it may have answered nevertheless.
  bool send(const request& header) {
    const auto note = [this] { return received_ = true; };
    const ending end = relay::pass_on(visit_.client, asked_, visit_.upstream, header, note);
    if (end.how == ending::source_failed && !ux::this_fiber::get_stop_token().stop_requested()) {
      client_error_ = end.why;
      cut_ = true;                          // before it looks like the end of an answer
      visit_.upstream_tcp.shutdown_read();  // no answer is to be waited for
    }
    return end.how == ending::complete;
  }

  // False: nothing was sent to the client.
  bool pass_answer_on() {
    std::optional<http::response_parser<http::buffer_body>> parser;
    boost::system::error_code error;
    do {  // until the answer itself comes
      parser.emplace();
      parser->body_limit(std::numeric_limits<std::uint64_t>::max());  // with none, Boost 1.74 refuses all
      parser->skip(head_only_);
      http::read_header(visit_.upstream.stream, visit_.upstream.buffer, *parser, error);
    } while (!error && parser->get().result_int() / 100 == 1);
    ux::this_fiber::check();
    if (error) return false;
    if (ux::http::has_strange_encoding(parser->get())) {
      why_none_ = "the answer's Transfer-Encoding is not \"chunked\"";
      return false;
    }
    stays_open_ = keeps_ && received_ && !visit_.draining.stop_requested();  // else the client connects again
    const auto is_whole = [&] { return !(parser->need_eof() && cut_); };
    const ending end = relay::pass_on(visit_.upstream, *parser, visit_.client, incoming(*parser), is_whole);
    const bool whole = end.how == ending::complete;
    if (!whole) visit_.client_tcp.abort();  // a cut answer must not look like a whole one
    ux::this_fiber::check();
    if (whole)
      visit_.home.count_answer();
    else
      stays_open_ = false;
    reusable_ = whole && parser->keep_alive();
    return true;
  }

  // The answer's header as the client gets it. Its body ends as the backend's does, or by chunks, or with the
  // connection, if the client does not know chunks.
  response incoming(const http::response_parser<http::buffer_body>& parser) {
    response made(parser.get().base());
    relay::erase_hop_fields(made);
    made.version(11);
    made.erase(http::field::transfer_encoding);
    const http::status status = made.result();
    if (status == http::status::no_content) made.erase(http::field::content_length);
    if (!head_only_ && status != http::status::no_content && status != http::status::not_modified) {
      if (parser.content_length())
        made.content_length(*parser.content_length());
      else if (knows_chunks_)
        made.chunked(true);
      else
        stays_open_ = false;
    }
    made.keep_alive(stays_open_);
    return made;
  }

  static bool changes_nothing(http::verb method) {
    return method == http::verb::get || method == http::verb::head || method == http::verb::options ||
           method == http::verb::trace;
  }

  visit& visit_;
  http::request_parser<http::buffer_body> asked_;  // of the fiber that sends the request, while there is one
  bool head_only_ = false;                         // it is HEAD
  bool knows_chunks_ = false;                      // the client does
  bool keeps_ = false;                             // the client lets another request follow
  bool stays_open_ = false;                        // and this was not denied
  std::atomic<bool> received_{false};              // all of the request
  boost::system::error_code client_error_;         // why it was not
  std::atomic<bool> cut_{false};                   // so the answer was not waited for
  bool reusable_ = false;                          // the backend's connection, after its answer
  const char* why_none_ = "no backend answers";
};

// Answers the requests of one client, one after the other.
void serve_client(proxy& home, ux::net::tcp_stream& client, const std::stop_token& draining) {
  visit here{home, client, draining};
  while (exchange(here).run()) {
  }
  if (client.is_open()) ux::deliver_last_words(client, 2s);
}

void serve(const arguments& given, examples::stop_signals& signals) {
  proxy home(given);
  ux::net::unix_stream before;
  std::optional<ux::net::tcp_listener> adopted;
  if (!given.control.empty()) adopted = hand_over::ask_for_listener(given.control, before);
  ux::net::tcp_listener listener = adopted ? std::move(*adopted) : hand_over::when_free([&] {
    return ux::net::tcp_listener::listen(ux::net::address::parse(given.listen));
  });
  std::fprintf(stderr, "%s %s\n", before.is_open() ? "took over" : "listening on",
               listener.local_endpoint().str().c_str());
  ux::scope([&](ux::task_group& group) {
    group.spawn([&] {
      ux::task_group connections;
      listener.serve(
          connections,
          [&](ux::net::tcp_stream& client, const std::stop_token& draining) { serve_client(home, client, draining); },
          {.max_connections = given.max_connections,
           .descriptors_per_connection = 2,  // its own and a backend's
           .drain_time = std::chrono::seconds(given.drain_seconds)});
    });
    if (before.is_open()) hand_over::tell_that_this_serves(before);  // from now on both accept
    ux::net::unix_listener control;
    if (!given.control.empty()) control = hand_over::listen_for_next(given.control);
    const auto ending = ux::when_any([&] { return signals.wait(); },
                                     [&] {
                                       if (!control.is_open())
                                         ux::this_fiber::sleep_until(ux::steady_clock::time_point::max());
                                       hand_over::give(control, listener);
                                     });
    std::fprintf(stderr, "%s\n", ending.index == 0 ? "stopping" : "handed over");
    if (ending.index == 1) signals.release();
    if (ending.index == 0) {
      listener.close();
    } else {
      ::close(listener.release());  // the connections in the backlog are the new process's
    }
  });
  std::fprintf(stderr, "answered %ju requests\n", static_cast<std::uintmax_t>(home.answered()));
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("--listen", given.listen, "Where clients connect: HOST:PORT")->capture_default_str();
    app.add_option("--to", given.to, "A backend: HOST:PORT; may be given again")->required();
    app.add_option("--control", given.control, "Path of the socket over which a new process takes over");
    app.add_option("--drain", given.drain_seconds, "Seconds that the connections have at the end")
        ->capture_default_str();
    app.add_option("--max-connections", given.max_connections,
                   "Most at a time, others wait; 0: what the limit of descriptors allows. Each takes two")
        ->capture_default_str();
  };
  return examples::run_program(argc, argv, "reverse_proxy", "Forwards HTTP requests to backends, in turn.", describe,
                               [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 ux::runtime(options).run([&] { serve(given, signals); });
                                 return 0;
                               });
}
