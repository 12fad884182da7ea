#pragma once

// A client of HTTP/1.1 for fibers, by Boost.Beast, with connections that are kept for later requests.
//
//   ulexite::http::client client;
//   const ulexite::http::response got = ulexite::timeout(5s, [&] { return client.get("http://example.org/"); });
//
// The library itself does not need Boost.Beast; a program that includes this header does. For https see http_tls.hpp.

#include <ulexite/interop/http_message.hpp>
#include <ulexite/interop/http_reply.hpp>
#include <ulexite/interop/http_wire.hpp>
#include <ulexite/sync/mutex.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ulexite::http {

// How a client behaves.
struct client_options {
  wire_maker tls{};                    // for https, see http_tls.hpp; empty: https is refused
  std::string user_agent = "ulexite";  // empty: none
  unsigned redirects = 0;              // that are followed; what is not followed is returned as it is
  std::size_t idle_connections = 100;  // kept at a time
  std::size_t idle_per_host = 16;      // of them, for one host
  std::chrono::nanoseconds idle_time = std::chrono::seconds(90);     // for which one is kept
  std::chrono::nanoseconds connect_time = std::chrono::seconds(10);  // for name, connection and handshake together
  std::uint32_t header_size = 64 * 1024;                             // bytes of an answer's header
  std::uint64_t body_size = 8 * 1024 * 1024;                         // bytes of an answer's body in a response
};

// Sends requests, and keeps connections for later ones. Any number of fibers may use it at the same time; each request
// has a connection of its own meanwhile. Functions that wait are cancellation points: a deadline of the fiber bounds
// them, and only that does, so give each request one. A request that is given up closes its connection.
//
// A server may close a kept connection at any time. If it does before it has sent a byte of its answer, a request with
// an idempotent method (GET, HEAD, PUT, DELETE, OPTIONS, TRACE) is sent once more on a new connection; another fails,
// because the server may have executed it. A connection that was seen to be closed is not used at all.
//
// Functions throw std::invalid_argument for an address that is none, and for a blank or a control character in a method
// or target; not_connected if there is no connection, and another std::system_error for a later failure; an answer of
// any status is a result.
class client {
 public:
  // Connects to nothing.
  explicit client(client_options options = {}) : options_(std::move(options)) {}
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  // Requests an address, and reads all of the answer.
  [[nodiscard]] response get(std::string_view address) { return send(address, http::request(verb::get)); }
  // The same with a method, a body and its type; an empty type leaves Content-Type out.
  response request(verb method, std::string_view address, std::string body = {}, std::string_view type = {}) {
    http::request asked(method, "/", std::move(body));
    if (!type.empty()) asked.set(field::content_type, boost::beast::string_view(type.data(), type.size()));
    return send(address, std::move(asked));
  }
  // Sends a request with its method, fields and body. Target, Host, Content-Length and User-Agent are filled in, and
  // there is no Transfer-Encoding. A redirect leads to the answer of its Location, if client_options allow it: 303 and
  // a POST's 301 and 302 by GET without the body, and Authorization and Cookie go to the same origin only. A Location
  // that is no address, or is https without client_options::tls, is not followed.
  response send(std::string_view address, http::request asked) {
    url at = url::parse(address);
    for (unsigned redirects = 0;; ++redirects) {
      reply got = open(at, asked);
      if (redirects >= options_.redirects || !follow(got.header_, at, asked)) return whole(std::move(got));
      discard(got);
    }
  }

  // Sends a request and reads the header of the answer, whatever its status: for a large body, or one that does not
  // end. Follows no redirect.
  [[nodiscard]] reply open(std::string_view address, http::request asked) {
    return open(url::parse(address), std::move(asked));
  }
  // As above.
  [[nodiscard]] reply open(const url& at, http::request asked) {
    fill_in(at, asked);
    const std::string bytes = text_of(asked);
    const bool may_repeat = is_idempotent(asked.method());
    for (;;) {
      reply made(*this, connection_to(at), asked.method() == verb::head, options_.header_size);
      const bool kept = made.connection_->kept;
      made.send(bytes);
      made.end();
      try {
        made.read_header();
        return made;
      } catch (const std::system_error& failure) {
        if (!kept || !may_repeat || !made.closed_unanswered_) throw;
      }
      drop_idle(at.origin());  // the server has probably closed them all
    }
  }
  // Sends the header of a request whose body follows by reply::write and reply::end, in `size` bytes, or without a size
  // in chunks; that of `asked` is left out. Is never sent twice.
  [[nodiscard]] reply begin(std::string_view address, http::request asked, std::optional<std::uint64_t> size = {}) {
    return begin(url::parse(address), std::move(asked), size);
  }
  // As above.
  [[nodiscard]] reply begin(const url& at, http::request asked, std::optional<std::uint64_t> size = {}) {
    fill_in(at, asked);
    asked.body().clear();
    if (size)
      asked.content_length(*size);
    else
      asked.chunked(true);
    const std::string text = text_of(asked);
    reply made(*this, connection_to(at), asked.method() == verb::head, options_.header_size);
    made.left_ = size;
    made.send(text);
    return made;
  }

  // Closes the connections that are kept. Never waits.
  void close_idle() {
    const std::lock_guard lock(guard_);
    idle_.clear();
  }
  // The number of connections that are kept. Any thread.
  [[nodiscard]] std::size_t idle_connections() const {
    const std::lock_guard lock(guard_);
    return idle_.size();
  }

 private:
  friend class reply;
  using connection = reply::connection;

  static bool is_idempotent(verb method) noexcept {
    switch (method) {
      case verb::get:
      case verb::head:
      case verb::put:
      case verb::delete_:
      case verb::options:
      case verb::trace: return true;
      default: return false;
    }
  }
  void fill_in(const url& at, http::request& asked) const {
    asked.target(at.target);
    asked.version(11);
    if (asked.count(field::host) == 0) asked.set(field::host, at.authority);
    if (!options_.user_agent.empty() && asked.count(field::user_agent) == 0)
      asked.set(field::user_agent, options_.user_agent);
    asked.erase(field::transfer_encoding);
    const verb method = asked.method();
    if (!asked.body().empty() || method == verb::post || method == verb::put || method == verb::patch)
      asked.content_length(asked.body().size());
    else
      asked.content_length(boost::none);
  }
  static std::string text_of(const http::request& asked) {
    const std::string_view method = view(asked.method_string()), target = view(asked.target());
    const auto ends_it = [](unsigned char c) { return c <= ' ' || c == 127; };
    if (std::ranges::any_of(method, ends_it) || std::ranges::any_of(target, ends_it))
      throw std::invalid_argument("a request with a blank or a control character in its method or target: \"" +
                                  std::string(method) + " " + std::string(target) + '"');
    std::string bytes(method);
    ((bytes += ' ') += target) += " HTTP/1.1\r\n";
    detail::http::append(bytes, asked);
    return bytes += asked.body();
  }

  // A kept connection, or a new one.
  std::unique_ptr<connection> connection_to(const url& at) {
    const std::string origin = at.origin();
    const auto oldest = steady_clock::now() - options_.idle_time;
    std::vector<std::unique_ptr<connection>> late;  // closed without the lock
    std::unique_ptr<connection> found;
    {
      const std::lock_guard lock(guard_);
      while (!idle_.empty() && idle_.front()->idle_since < oldest) take(0, late);
      for (std::size_t i = idle_.size(); i-- > 0 && !found;) {
        if (idle_[i]->origin != origin) continue;
        take(i, late);
        // It is readable: the server has closed it, or has sent what nobody has asked for.
        pollfd input{.fd = late.back()->tcp.native_handle(), .events = POLLIN | POLLRDHUP, .revents = 0};
        if (::poll(&input, 1, 0) == 0) {
          found = std::move(late.back());
          late.pop_back();
        }
      }
    }
    if (!found) found = connect(at);
    found->tcp.expires_never();
    return found;
  }
  std::unique_ptr<connection> connect(const url& at) const try {
    if (at.secure && !options_.tls)
      throw std::invalid_argument("\"" + at.origin() + "\": this client has no TLS, see client_options::tls");
    const auto until = detail::http::end_of(options_.connect_time);
    auto made = std::make_unique<connection>();
    made->buffer.max_size(options_.header_size + reply::block_size);
    made->origin = at.origin();
    made->tcp = net::tcp_stream::connect(net::address(at.host, at.port), {.timeout = options_.connect_time});
    made->tcp.expires_at(until);
    made->stream = at.secure ? options_.tls(made->tcp, at.host) : std::make_unique<detail::http::bare_wire>(made->tcp);
    return made;
  } catch (const operation_cancelled&) {
    throw;
  } catch (const std::system_error& error) {
    throw not_connected(error);
  }
  void keep(std::unique_ptr<connection> done) {
    done->kept = true;
    done->ended.store(0, std::memory_order_relaxed);  // published by guard_
    done->idle_since = steady_clock::now();
    if (done->buffer.capacity() >= reply::block_size) done->buffer.shrink_to_fit();  // it is empty
    std::vector<std::unique_ptr<connection>> late{};                                 // closed without the lock
    const std::lock_guard lock(guard_);
    std::size_t of_host = 0, oldest = 0;
    for (std::size_t i = idle_.size(); i-- > 0;)
      if (idle_[i]->origin == done->origin) ++of_host, oldest = i;
    if (options_.idle_connections == 0 || options_.idle_per_host == 0) return;
    if (of_host >= options_.idle_per_host)
      take(oldest, late);
    else if (idle_.size() >= options_.idle_connections)
      take(0, late);
    idle_.push_back(std::move(done));
  }
  // Called with guard_ held.
  void take(std::size_t index, std::vector<std::unique_ptr<connection>>& into) {
    const auto at = idle_.begin() + static_cast<std::ptrdiff_t>(index);
    into.push_back(std::move(*at));
    idle_.erase(at);
  }
  void drop_idle(const std::string& origin) {
    std::vector<std::unique_ptr<connection>> late;
    const std::lock_guard lock(guard_);
    for (std::size_t i = idle_.size(); i-- > 0;)
      if (idle_[i]->origin == origin) take(i, late);
  }

  // Turns to where an answer leads. False if it leads nowhere.
  bool follow(const response& got, url& at, http::request& asked) const {
    const unsigned code = got.result_int();
    if (code != 301 && code != 302 && code != 303 && code != 307 && code != 308) return false;
    if (got.count(field::location) != 1) return false;
    url to;
    try {
      to = at.resolve(view(got[field::location]));
    } catch (const std::invalid_argument&) {
      return false;
    }
    if (to.secure && !options_.tls) return false;
    const verb method = asked.method();
    if ((code == 303 && method != verb::head) || (code < 303 && method == verb::post)) {
      asked.method(verb::get);
      asked.body().clear();
      asked.erase(field::content_type);
    }
    asked.erase(field::host);
    if (to.origin() != at.origin())
      for (const field secret : {field::authorization, field::cookie, field::proxy_authorization}) asked.erase(secret);
    at = std::move(to);
    return true;
  }
  // Reads a small body that nobody wants, so that the connection can be kept.
  static void discard(reply& got) {
    if (got.body_size().value_or(reply::block_size) < reply::block_size)
      while (!got.read_some().empty()) {
      }
  }
  response whole(reply got) const {
    got.header_.body() = got.read_all(options_.body_size);
    return std::move(got.header_);
  }

  const client_options options_;
  mutable mutex guard_;
  std::vector<std::unique_ptr<connection>> idle_;  // the oldest first
};

inline void reply::finish(unsigned part) {
  if ((connection_->ended.fetch_or(part, std::memory_order_acq_rel) | part) != 3) return;  // pairs with itself
  if (reusable_)
    client_->keep(std::move(connection_));
  else
    connection_.reset();
}

}  // namespace ulexite::http
