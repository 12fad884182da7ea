#pragma once

// A server of HTTP/1.1 in fibers, by Boost.Beast.
//
//   ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip("127.0.0.1", 8080));
//   ulexite::http::serve(listener, [](const ulexite::http::request& asked) {
//     return ulexite::http::response(200, "you asked for " + std::string(asked.path()) + "\n");
//   });
//
// The library itself does not need Boost.Beast; a program that includes this header does. TLS is in http_tls.hpp.

#include <ulexite/coroutine/await.hpp>
#include <ulexite/coroutine/net.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/interop/http_exchange.hpp>
#include <ulexite/interop/lingering_close.hpp>
#include <ulexite/sync/task_group.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace ulexite::http {

// How to serve. The functions are called in the fibers of connections, many at a time.
struct server_options {
  // Of each connection and request.
  http::limits limits{};
  // Makes the stream of a connection, see http_tls.hpp; empty: no encryption.
  wire_maker wire{};
  // The most connections at a time: see net::serve_options.
  std::size_t max_connections = 0;
  // The descriptors that each needs: see net::serve_options.
  std::size_t descriptors_per_connection = 1;
  // After the stop, how long requests under way have before their fibers are asked to stop.
  std::chrono::nanoseconds drain_time = std::chrono::seconds(10);
  // Makes the answer to a wrong request, and to an exception of the handler (500). Empty: a line of text.
  std::function<response(const exchange& of, status code, const std::string& why)> refuse{};
  // Called with an exception that left the handler and is not the client's affair. It must not throw. Empty: a line on
  // stderr.
  std::function<void(const exchange& of, const std::exception_ptr& failure)> on_error{};
  // Called at the end of each request, such as for a log; also of one that could not be read: result_int() is 0 if it
  // was not answered. It must not throw.
  std::function<void(const exchange& of)> on_end{};
};

}  // namespace ulexite::http

namespace ulexite::detail::http {

// One connection of a server.
class connection {
 public:
  using answer = std::function<void(exchange&)>;

  // Serves it to its end. A fiber that runs this task gives up its stack between two requests that are far apart.
  static ulexite::task<> run(net::tcp_stream& tcp, const std::stop_token& closing, const answer& handler,
                             const server_options& options) {
    connection here(tcp, closing, handler, options);
    here.open();
    do {
      bool ended = false;  // set by the callback; the destructor waits for its end
      boost::system::error_code error;
      if (!here.begins_request()) {  // else it has arrived with the last one
        if (here.buffer_.capacity() >= exchange::block_size) here.buffer_.shrink_to_fit();  // a body has made it large
        const std::stop_callback end_read(closing, [&]() noexcept { ended = here.end_idle_read(); });
        const steady_clock::time_point until = end_of(options.limits.idle_time);
        tcp.expires_at(until);
        bool idles = false;  // then the last read has left nothing in TLS either
        do {
          if (idles) {
            here.buffer_.shrink_to_fit();
            tcp.reads_expire_at(until);
            try {
              co_await co_readable(tcp);
            } catch (const std::system_error&) {  // the read has it too
            }
          }
          tcp.reads_expire_at(std::min(until, steady_clock::now() + time_on_stack));
          here.buffer_.commit(here.wire_->read_some(here.buffer_.prepare(4096), error));
          idles = error == boost::asio::error::timed_out && steady_clock::now() < until;
          if (idles) error = {};
          // An idle read that the stop has not ended has a request to read, which came behind its time.
        } while (!error && !here.begins_request() && (idles || !closing.stop_requested()));
      }
      if (error) this_fiber::check();
      // A request that arrived at this moment is not begun, because its rest could not be read.
      if (ended || !here.begins_request()) break;
    } while (here.serve_one());
    here.end();
  }

 private:
  // A client that asks again sooner pays nothing for the change of stacks, some 9 % of the instructions of a request.
  static constexpr auto time_on_stack = std::chrono::milliseconds(100);

  connection(net::tcp_stream& tcp, const std::stop_token& closing, const answer& handler, const server_options& options)
      : tcp_(tcp),
        closing_(closing),
        handler_(handler),
        options_(options),
        buffer_(options.limits.header_size + exchange::block_size) {}

  void open() {
    const std::stop_callback give_up(closing_, [this]() noexcept { tcp_.shutdown_read(); });
    tcp_.expires_after(options_.limits.handshake_time);
    if (!options_.wire) {
      wire_ = std::make_unique<bare_wire>(tcp_);
      return;
    }
    try {
      wire_ = options_.wire(tcp_, std::string());
    } catch (const std::system_error& error) {
      this_fiber::check();
      throw peer_failed(error.what());
    }
  }

  bool begins_request() { return skip_empty_lines(buffer_); }
  // Called at the stop: ends an idle read, and returns whether it did. If the first bytes of a request have arrived,
  // but the fiber has not run since, the request must be read too.
  bool end_idle_read() noexcept {
    char first;
    if (::recv(tcp_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return false;
    tcp_.shutdown_read();
    return true;
  }
  void end() {
    if (!tcp_.is_open()) return;
    tcp_.expires_after(options_.limits.linger_time);
    std::error_code ignored;  // the rest is read below
    wire_->shutdown_write(ignored);
    net::lingering_close(tcp_, options_.limits.linger_time);
  }

  // Whether another request may follow.
  bool serve_one() {
    exchange now(*wire_, buffer_, options_.limits, closing_);
    struct at_end {
      ~at_end() {
        if (on_end) on_end(of);
      }
      const std::function<void(const exchange&)>& on_end;
      const exchange& of;
    } const tell{options_.on_end, now};
    try {
      answer_one(now);
    } catch (...) {
      if (now.result_int() != 0 && !now.ended()) tcp_.abort();  // what was sent must not look like a whole answer
      throw;
    }
    return now.ended() && now.keep_alive() && now.is_whole();
  }
  void answer_one(exchange& now) {
    try {
      now.read_header();
      const auto most = options_.limits.connection_time;
      if (most.count() > 0 && now.begun_at() - begun_ > most) now.make_last();
      handler_(now);
      now.end();
      if (now.keep_alive() && !now.is_whole()) now.skip_body();
    } catch (const refusal& refused) {
      if (now.ended()) return now.make_last();  // it was about the rest of the body
      refuse(now, refused.result(), refused.what());
    } catch (const operation_cancelled&) {
      this_fiber::check();  // else it was a deadline of the handler's own
      report(now);
      refuse(now, status::service_unavailable, "the answer took too long");
    } catch (const peer_failed&) {
      throw;
    } catch (...) {
      report(now);
      refuse(now, status::internal_server_error, "the server has failed");
    }
  }
  void refuse(exchange& now, status code, const std::string& why) {
    if (now.result_int() != 0 || now.ended()) {
      if (now.result_int() == 0) tcp_.abort();  // upgraded: what the handler has sent must not look whole either
      throw peer_failed(why);
    }
    if (!now.is_whole()) now.make_last();
    now.send_unread(options_.refuse ? options_.refuse(now, code, why) : line_of(code, why));
  }
  static response line_of(status code, const std::string& why) {
    return {code, std::to_string(static_cast<unsigned>(code)) + " " +
                      std::string(view(boost::beast::http::obsolete_reason(code))) + ": " + why + "\n"};
  }
  void report(const exchange& now) const {
    if (options_.on_error) return options_.on_error(now, std::current_exception());
    const auto& asked = now.request();
    std::string line = "ulexite: http: " + std::string(view(asked.method_string())) + ' ' +
                       std::string(asked.path().substr(0, 200)) + ": ";
    try {
      throw;
    } catch (const std::exception& failure) {
      line += failure.what();
    } catch (...) {
      line += "an exception that is no std::exception";
    }
    std::fprintf(stderr, "%s\n", line.c_str());
  }

  net::tcp_stream& tcp_;
  const std::stop_token& closing_;
  const answer& handler_;
  const server_options& options_;
  const steady_clock::time_point begun_ = steady_clock::now();
  std::unique_ptr<wire> wire_;
  // Bytes that were read, and belong to the next request. Without a maximum it would hold all of a chunk's extension,
  // or of a trailer, because Beast does not limit these.
  boost::beast::flat_buffer buffer_;
};

template <class Handler>
std::function<void(exchange&)> answer_by(Handler& handler) {
  if constexpr (std::is_invocable_v<Handler&, exchange&>) {
    return [&handler](exchange& now) { std::invoke(handler, now); };
  } else {
    static_assert(std::is_invocable_r_v<response, Handler&, const request&>,
                  "a handler is called with an http::exchange&, or with a const http::request& and returns a response");
    return [&handler](exchange& now) {
      now.read_body();
      now.send(std::invoke(handler, now.request()));
    };
  }
}

}  // namespace ulexite::detail::http

namespace ulexite::http {

// Serves one connection to its end: for programs with an accept loop, or a choice for each connection, of their own.
// Once a stop is requested of `closing`, it ends between two requests; a request under way is the last. Throws a
// std::system_error of connection_aborted when the client causes an end in the middle, and operation_cancelled. The
// caller closes the connection. `options` must live as long. The calling fiber keeps its stack between two requests.
template <class Handler>
void serve_connection(net::tcp_stream& tcp, const std::stop_token& closing, Handler&& handler,
                      const server_options& options = {}) {
  const auto answer = detail::http::answer_by(handler);
  await(detail::http::connection::run(tcp, closing, answer, options));
}

// As serve_connection, for a coroutine: it has no stack while the client is idle for more than 100 ms. Keeps copies of
// the handler and of the options.
template <class Handler>
[[nodiscard]] task<> co_serve_connection(net::tcp_stream& tcp, std::stop_token closing, Handler handler,
                                         server_options options = {}) {
  const auto answer = detail::http::answer_by(handler);
  co_await detail::http::connection::run(tcp, closing, answer, options);
}

// Accepts connections and answers their requests until the listener is closed. Each connection has a fiber, which calls
// the handler for one request after the other, and has no stack while the client is idle for more than 100 ms:
//
//   response handler(const request& asked)   // with all of the body
//   void handler(exchange& now)              // reads and writes bodies in parts
//
// Many fibers call the same object at the same time. A refusal that leaves the handler is the answer; a deadline of the
// handler's own is answered with 503, another exception with 500, and goes to on_error. If the answer has begun, the
// connection is cut.
//
// At the close, idle connections end, requests under way are answered with `Connection: close`, and after drain_time
// the handlers are asked to stop; serve still waits for them. For fibers. A cancellation point, as tcp_listener::serve,
// which tells more. In reports the fibers are spawned at `where`.
template <class Handler>
void serve(net::tcp_listener& listener, Handler handler, const server_options& options = {},
           std::source_location where = std::source_location::current()) {
  const auto answer = detail::http::answer_by(handler);
  task_group connections;
  listener.serve(
      connections,
      [&](net::tcp_stream& tcp, const std::stop_token& closing) {
        return detail::http::connection::run(tcp, closing, answer, options);
      },
      {.max_connections = options.max_connections,
       .descriptors_per_connection = options.descriptors_per_connection,
       .drain_time = options.drain_time},
      where);
}

}  // namespace ulexite::http
