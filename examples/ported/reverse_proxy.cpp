// A reverse proxy for HTTP/1.1, after Go's httputil.ReverseProxy behind an http.Server. A new process can replace it
// without losing a request: it asks the old one for its listener, over a Unix socket.
//
//   reverse_proxy --listen 127.0.0.1:8000 --to 127.0.0.1:8080 --to 127.0.0.1:8081 --control /run/proxy.sock
//
// The same command again takes the listener over. The old process answers what it has, tells its clients to close, and
// ends; so it does on SIGTERM and SIGINT.

#include "../expect_continue.hpp"
#include "../last_words.hpp"
#include "../program.hpp"
#include "../request_fault.hpp"
#include "../write_answer.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/asio.hpp>

#include <CLI/CLI.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ux = ulexite;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;
constexpr std::uint64_t largest_body = 8 << 20;

struct arguments {
  std::string listen = "127.0.0.1:8000";
  std::vector<std::string> to;
  std::string control;
  int drain_seconds = 10;
};

class proxy {
 public:
  explicit proxy(const arguments& given) {
    for (const std::string& each : given.to) backends_.push_back(ux::net::address::parse(each));
  }

  // Answers the requests of one client, one after the other.
  void serve(ux::net::tcp_stream& client, const std::stop_token& draining) {
    const std::string from = client.remote_endpoint().str();
    ux::asio_stream stream(client);
    boost::beast::flat_buffer buffer(largest_body);
    backend upstream;
    for (bool open = true; open;) {
      arrival got = read(client, stream, buffer);
      if (got.refused) send(client, stream, *got.refused, got.head_only);
      if (!got.asked) break;
      response answer = forward(std::move(*got.asked), from, upstream);
      open = got.keeps && !draining.stop_requested();  // asked last: the client then opens the next at the new process
      answer.keep_alive(open);
      if (!send(client, stream, answer, got.head_only)) break;
      ++answered_;
    }
    examples::deliver_last_words(client, 2s);
  }

  [[nodiscard]] std::uint64_t answered() const { return answered_; }

 private:
  // A connection to a backend, kept as long as that of the client.
  struct backend {
    ux::net::tcp_stream stream;
    boost::beast::flat_buffer buffer;
  };

  // What comes from a client. Without `asked` the connection has ended, or `refused` is the answer before its end.
  struct arrival {
    std::optional<request> asked;
    std::optional<response> refused;
    bool head_only = false;  // it is HEAD
    bool keeps = false;      // another request may follow
  };

  static arrival read(ux::net::tcp_stream& client, ux::asio_stream& stream, boost::beast::flat_buffer& buffer) {
    arrival got;
    const auto refuse = [&got](std::optional<response> why) {
      got.refused = std::move(why);
      return std::move(got);
    };
    client.expires_after(60s);
    http::request_parser<http::string_body> parser;
    parser.body_limit(largest_body);
    boost::system::error_code error;
    http::read_header(stream, buffer, parser, error);
    if (error) return refuse(refusal_of(error));
    got.head_only = parser.get().method() == http::verb::head;
    if (const auto fault = examples::fault_of(parser.get())) return refuse(refusal(fault->status, fault->why));
    // A proxy must not keep a connection of HTTP/1.0: RFC 9112, 9.3. The parser sees all lines of Connection, and the
    // request only the first.
    got.keeps = parser.get().version() >= 11 && parser.keep_alive();
    client.expires_after(60s);
    if (examples::waits_to_continue(parser)) client.write(examples::continue_now);
    http::request_header<> header = parser.get().base();  // before the trailers, which Beast adds
    http::read(stream, buffer, parser, error);
    if (error) return refuse(refusal_of(error));
    got.asked.emplace(std::move(header), std::move(parser.get().body()));
    if (got.asked->method() == http::verb::trace && !got.asked->body().empty()) {
      got.asked.reset();
      return refuse(refusal(http::status::bad_request, "TRACE has no body"));
    }
    return got;
  }

  // Whether it was sent. The answer to HEAD is a header only.
  static bool send(ux::net::tcp_stream& client, ux::asio_stream& stream, response& answer, bool head_only) {
    client.expires_after(60s);
    boost::system::error_code error;
    examples::write_answer(stream, answer, head_only, error);
    return !error;
  }

  // Erases what concerns only one connection: known fields, and those that `Connection` names.
  static void erase_hop_fields(http::fields& header) {
    std::vector<std::string> named;  // copies, because an erased line takes its names with it
    for (auto [line, end] = header.equal_range(http::field::connection); line != end; ++line)
      for (const auto name : http::token_list(line->value())) named.emplace_back(name.data(), name.size());
    for (const std::string& name : named)
      if (!boost::beast::iequals(name, "host")) header.erase(name);
    for (const auto hop : {http::field::connection, http::field::keep_alive, http::field::te, http::field::trailer,
                           http::field::upgrade, http::field::proxy_connection, http::field::expect})
      header.erase(hop);
  }

  response forward(request asked, const std::string& from, backend& upstream) {
    erase_hop_fields(asked);
    asked.version(11);  // the proxy's own, as in each message that it sends
    if (asked.count(http::field::host) == 0) asked.set(http::field::host, "");  // of HTTP/1.0; HTTP/1.1 needs one
    asked.set("X-Forwarded-For", from.substr(0, from.rfind(':')));
    asked.keep_alive(true);
    asked.prepare_payload();
    // The backend may have closed a kept connection. Mostly that is seen here. Otherwise the backend may have received
    // the request, so only a request that changes nothing is sent again.
    if (upstream.stream.is_open() && ux::net::wait_readable_for(upstream.stream.native_handle(), 0s)) drop(upstream);
    const bool had_one = upstream.stream.is_open();
    auto answer = attempt(asked, upstream);
    if (!answer && had_one && changes_nothing(asked.method())) answer = attempt(asked, upstream);
    if (answer) return std::move(*answer);
    return refusal(http::status::bad_gateway, "no backend answers");
  }

  static response refusal(http::status status, const std::string& why) {
    response made(status, 11);
    made.body() = why + "\n";
    made.prepare_payload();
    made.keep_alive(false);
    return made;
  }

  // The answer to a request that cannot be read. Nullopt: the connection has failed or ended.
  static std::optional<response> refusal_of(const boost::system::error_code& error) {
    if (error.category() != make_error_code(http::error::bad_version).category()) return std::nullopt;
    if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
    if (error == http::error::body_limit) return refusal(http::status::payload_too_large, "the body is too large");
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refusal(http::status::request_header_fields_too_large, "the header is too large");
    return refusal(http::status::bad_request, "the request is malformed");
  }

  std::optional<response> attempt(const request& asked, backend& upstream) {
    if (!upstream.stream.is_open() && !connect(upstream)) return std::nullopt;
    upstream.stream.expires_after(30s);
    ux::asio_stream stream(upstream.stream);
    boost::system::error_code error;
    http::write(stream, asked, error);
    std::optional<http::response_parser<http::string_body>> parser;
    http::response_header<> header;
    do {  // until the answer itself comes
      parser.emplace();
      parser->body_limit(largest_body);
      if (asked.method() == http::verb::head) parser->skip(true);
      if (!error) http::read_header(stream, upstream.buffer, *parser, error);
      header = parser->get().base();  // before the trailers
      if (!error && !parser->is_done()) http::read(stream, upstream.buffer, *parser, error);
    } while (!error && parser->get().result_int() / 100 == 1);
    ux::this_fiber::check();
    // Bytes behind the answer belong to no request, and would pass for the next answer.
    if (error || !parser->keep_alive() || upstream.buffer.size() > 0) drop(upstream);
    if (error == http::error::body_limit) return refusal(http::status::bad_gateway, "the answer is too large");
    if (error) return std::nullopt;
    response answer(std::move(header), std::move(parser->get().body()));
    erase_hop_fields(answer);
    answer.version(11);
    if (answer.chunked()) answer.chunked(false);
    const http::status status = answer.result();
    if (status == http::status::no_content)
      answer.erase(http::field::content_length);
    else if (asked.method() != http::verb::head && status != http::status::not_modified)
      answer.prepare_payload();
    return answer;
  }

  static void drop(backend& upstream) {
    upstream.stream = {};
    upstream.buffer.clear();
  }

  static bool changes_nothing(http::verb method) {
    return method == http::verb::get || method == http::verb::head || method == http::verb::options ||
           method == http::verb::trace;
  }

  // To the next backend that accepts.
  bool connect(backend& upstream) {
    for (std::size_t i = 0; i < backends_.size(); ++i) {
      std::error_code error;
      upstream.stream = ux::net::tcp_stream::connect(backends_[next_++ % backends_.size()], {.timeout = 5s}, error);
      if (!error) return true;
    }
    ux::this_fiber::check();
    return false;
  }

  std::vector<ux::net::address> backends_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> answered_{0};
};

// The listener of the process before, which then waits for a word; or a new one.
ux::net::tcp_listener find_listener(const arguments& given, ux::net::unix_stream& before) {
  const auto at = ux::net::address::parse(given.listen);
  if (given.control.empty()) return ux::net::tcp_listener::listen(at);
  std::error_code none;
  before = ux::net::unix_stream::connect(ux::net::endpoint::local(given.control), none);
  if (none) {
    // Its process was killed. Otherwise it would have removed the path.
    if (none == std::errc::connection_refused && std::filesystem::is_socket(given.control))
      std::filesystem::remove(given.control);
    return ux::net::tcp_listener::listen(at);
  }
  before.expires_after(10s);
  char word;
  std::vector<int> descriptors;
  if (ux::net::receive_descriptors(before, &word, 1, descriptors) != 1 || descriptors.size() != 1)
    throw std::runtime_error("the process at " + given.control + " gave no listener");
  return ux::net::tcp_listener::adopt(descriptors.front());
}

// Gives the listener to the next process that asks. Returns when that serves.
void hand_over(ux::net::unix_listener& control, const ux::net::tcp_listener& listener) {
  for (;;) {
    auto next = control.accept();
    next.expires_after(10s);
    const int fd = listener.native_handle();
    std::error_code error;
    ux::net::send_descriptors(next, "l", std::span(&fd, 1), error);
    char word;
    if (!error && next.read_some(&word, 1, error) == 1) {
      control.close();  // before `next`: its end shows that the path is free
      return;
    }
  }
}

void serve(const arguments& given, examples::stop_signals& signals) {
  proxy handler(given);
  ux::net::unix_stream before;
  auto listener = find_listener(given, before);
  std::fprintf(stderr, "%s %s\n", before.is_open() ? "took over" : "listening on",
               listener.local_endpoint().str().c_str());
  ux::scope([&](ux::task_group& group) {
    group.spawn([&] {
      ux::task_group connections;
      listener.serve(
          connections,
          [&](ux::net::tcp_stream& client, const std::stop_token& draining) { handler.serve(client, draining); },
          {.descriptors_per_connection = 2,  // its own and a backend's
           .drain_time = std::chrono::seconds(given.drain_seconds)});
    });
    if (before.is_open()) {  // from now on both accept, and the old one may stop
      before.write("o");
      char word;
      (void)before.read_some(&word, 1);
    }
    ux::net::unix_listener control;
    if (!given.control.empty()) control = ux::net::unix_listener(ux::net::endpoint::local(given.control));
    const auto ending = ux::when_any([&] { return signals.wait(); },
                                     [&] {
                                       if (!control.is_open())
                                         ux::this_fiber::sleep_until(ux::steady_clock::time_point::max());
                                       hand_over(control, listener);
                                     });
    std::fprintf(stderr, "%s\n", ending.index == 0 ? "stopping" : "handed over");
    if (ending.index == 0) {
      listener.close();
    } else {
      ::close(listener.release());  // the connections in the backlog are the new process's
    }
  });
  std::fprintf(stderr, "answered %ju requests\n", static_cast<std::uintmax_t>(handler.answered()));
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
  };
  return examples::run_program(argc, argv, "reverse_proxy", "Forwards HTTP requests to backends, in turn.", describe,
                               [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 ux::runtime(options).run([&] { serve(given, signals); });
                                 return 0;
                               });
}
