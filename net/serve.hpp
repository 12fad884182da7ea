#pragma once

// Options and inner parts of tcp_listener::serve.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <chrono>
#include <coroutine>  // for a co_await in a template, g++ 15 wants it before the template
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite::net {

class tcp_listener;
class tcp_stream;

// How tcp_listener::serve treats its connections.
struct serve_options {
  // The largest number of connections at a time; others wait in the listener's backlog. 0: the number that
  // RLIMIT_NOFILE allows when serve begins, less 64 descriptors (or a quarter, if that is less) for other uses. Several
  // servers of one process share this limit, so give each its part.
  std::size_t max_connections = 0;
  // The number of descriptors that a connection needs: 2 in a proxy. Used only if max_connections is 0.
  std::size_t descriptors_per_connection = 1;
  // The time that connections have to end by themselves after the close of the listener.
  std::chrono::nanoseconds drain_time = std::chrono::seconds(10);
  // A first part of the drain time. While one connection is younger than this, serve notifies no connection of the
  // close, because the young connection's first request may still be on its way.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(100);
  // Called with an exception that left the handler, in the connection's fiber. It must not throw. It is not called for
  // the operation_cancelled of a fiber that was asked to stop. The default ignores errors that clients cause
  // (connection_reset, connection_aborted, broken_pipe, not_connected, timed_out), and prints one line on stderr for
  // others.
  std::function<void(const endpoint& peer, std::exception_ptr failure)> on_error{};
  // The name of each connection's fiber in reports. Empty: none.
  std::string name{};
};

}  // namespace ulexite::net

namespace ulexite::detail {

class server;

// A connection, as its fiber sees it.
class served_connection {
 public:
  served_connection(const served_connection&) = delete;
  served_connection& operator=(const served_connection&) = delete;

  // Calls the handler, and reports its exception. For a handler that makes a coroutine this is one too.
  template <class Handler>
  auto run(Handler& handler) {
    if constexpr (is_coroutine<decltype(call(handler))>) {
      return run_coroutine<decltype(call(handler))>(handler);
    } else {
      try {
        begin();
        [[maybe_unused]] const auto reads = end_reads_at_close<Handler>();
        static_cast<void>(call(handler));
      } catch (...) {
        failed();
      }
    }
  }

 protected:
  served_connection(server& home, net::tcp_stream& stream) noexcept;
  ~served_connection() = default;

  server& home_;

 private:
  template <class Handler>
  static constexpr bool takes_token = std::is_invocable_v<Handler&, net::tcp_stream&, const std::stop_token&>;

  template <class Handler>
  decltype(auto) call(Handler& handler) {
    if constexpr (takes_token<Handler>) {
      return std::invoke(handler, stream_, closing_);
    } else {
      return std::invoke(handler, stream_);
    }
  }
  template <class Coroutine, class Handler>
  Coroutine run_coroutine(Handler& handler) {
    static_assert(std::is_void_v<spawned_result_t<Coroutine>>, "a coroutine that serves a connection returns a task<>");
    try {
      begin();
      [[maybe_unused]] const auto reads = end_reads_at_close<Handler>();
      co_await call(handler);
    } catch (...) {
      failed();
    }
  }
  template <class Handler>
  auto end_reads_at_close() {
    if constexpr (takes_token<Handler>) {
      return nullptr;
    } else {
      return std::stop_callback(closing_, [this]() noexcept { end_reads(); });
    }
  }
  void begin() const;
  void end_reads() noexcept;
  void failed() const;  // called in a catch block

  net::tcp_stream& stream_;
  const std::stop_token closing_;  // a coroutine may refer to it
};

// The state of one tcp_listener::serve, in its frame. It outlives the fibers of the connections.
class server {
 public:
  // Starts the fiber of a connection, once its group has room. False: it had none by then.
  using starter = std::function<bool(task_group& in, steady_clock::time_point until,
                                     std::shared_ptr<served_connection> who, std::source_location where)>;

  // `where` is where the program calls serve: its fibers are spawned there.
  server(net::tcp_listener& listener, task_group& group, starter start, const net::serve_options& options,
         std::source_location where);
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  // Accepts until the listener is closed and its backlog is empty, and then waits for the connections.
  void run();

 private:
  friend class served_connection;
  struct connection;

  void accept_all();
  void take_backlog() noexcept;
  template <class Over>
  [[nodiscard]] bool start(net::tcp_stream& accepted, Over over);
  [[nodiscard]] std::int64_t grace_left() const noexcept;
  void drain();

  net::tcp_listener& listener_;
  task_group& group_;
  const starter start_;
  const net::serve_options& options_;
  const std::source_location where_;
  const std::stop_token closing_;         // the listener's
  std::stop_source ending_;               // notifies the connections
  counting_semaphore<> slots_;            // a permit for each further connection
  wait_group connections_;                // counts the connections that have not ended
  std::int64_t youngest_ = 0;             // when the last connection was accepted
  std::vector<net::tcp_stream> backlog_;  // left at the close; the closing thread fills it
  std::vector<net::tcp_stream> waiting_;  // accepted since
};

// Waits for the end of a fiber that serves, and throws its exception. If the caller is asked to stop, that fiber is
// too.
void await_server(join_handle<>& server);

}  // namespace ulexite::detail
