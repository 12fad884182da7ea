#pragma once

// A server of HTTP for a test, and raw clients of it.

#include "net/net_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/interop/http.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/stopped_world.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ulexite::test {

// Serves on a free port until it is stopped or destroyed. On its own fiber; make it in a fiber.
class http_home {
 public:
  template <class Handler>
  explicit http_home(Handler handler, http::server_options options = {})
      : options_(std::move(options)),
        serving_(spawn([this, handler = std::move(handler)] { http::serve(listener_, handler, options_); })) {}
  ~http_home() { stop(); }

  void stop() {
    listener_.close();
    if (serving_.joinable()) serving_.get();
  }
  void close() { listener_.close(); }
  [[nodiscard]] const net::endpoint& at() const { return listener_.local_endpoint(); }
  [[nodiscard]] std::string url(std::string_view target = "/") const {
    return "http://" + at().str() + std::string(target);
  }

 private:
  net::tcp_listener listener_{loopback()};
  const http::server_options options_;
  join_handle<> serving_;
};

// A client that sends what it is told to.
class raw_client {
 public:
  explicit raw_client(const net::endpoint& to) : tcp_(net::tcp_stream::connect(to, {.timeout = bound})) {
    tcp_.expires_after(bound);
  }

  void send(std::string_view text) {
    std::error_code error;  // the server may have ended the connection already
    tcp_.write(text, error);
  }
  // Up to the end, or a reset.
  std::string rest() {
    std::string all = std::move(read_);
    char part[4096];
    std::error_code error;
    while (const std::size_t got = tcp_.read_some(part, sizeof part, error)) all.append(part, got);
    EXPECT_NE(error, std::errc::timed_out) << all;
    return all;
  }
  // Up to and with `end`.
  std::string up_to(std::string_view end) {
    std::size_t found;
    char part[4096];
    while ((found = read_.find(end)) == read_.npos) {
      std::error_code error;
      const std::size_t got = tcp_.read_some(part, sizeof part, error);
      if (got == 0) return "cut: " + read_;
      read_.append(part, got);
    }
    std::string made = read_.substr(0, found + end.size());
    read_.erase(0, made.size());
    return made;
  }
  net::tcp_stream& tcp() { return tcp_; }

 private:
  net::tcp_stream tcp_;
  std::string read_;
};

// The last request of a connection.
inline const std::string last = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

inline std::string ask_raw(const net::endpoint& to, std::string_view text) {
  raw_client client(to);
  client.send(text);
  return client.rest();
}

inline std::size_t fibers_with_a_stack() {
  std::size_t found = 0;
  for_each_fiber(current_runtime(), [&](const fiber_view& each) { found += each.low ? 1 : 0; });
  return found;
}

// Until each connection has idled for long enough: only the calling fiber and the one that accepts have a stack.
inline void wait_until_stacks_are_given_up() {
  wait_until_others_wait();
  wait_until([] { return fibers_with_a_stack() <= 2; });
}

// The words of the exception, or "none".
inline std::string failure_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::system_error& error) {
    return error.what();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

// How often `text` is in it.
inline int occurrences(std::string_view in, std::string_view text) {
  int found = 0;
  for (std::size_t at = in.find(text); at != in.npos; at = in.find(text, at + text.size())) ++found;
  return found;
}

inline http::response hello(const http::request& asked) {
  return {200U, std::string(http::view(asked.method_string())) + ' ' + std::string(asked.path()) + ' ' + asked.body()};
}

}  // namespace ulexite::test
