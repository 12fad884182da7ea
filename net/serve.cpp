#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/net/serve.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace ulexite::detail {

void await_server(join_handle<>& server) {
  try {
    select(on_join(server));
  } catch (const deadline_exceeded&) {  // which the server has inherited
  } catch (const operation_cancelled&) {
    server.request_stop();
  }
  server.get();
}

namespace {

bool is_the_clients_affair(const std::error_code& error) noexcept {
  return error == std::errc::connection_reset || error == std::errc::connection_aborted ||
         error == std::errc::broken_pipe || error == std::errc::not_connected || error == std::errc::timed_out;
}

void report_on_stderr(const net::endpoint& peer, const std::exception_ptr& failure) noexcept {
  std::string from = "a peer";
  try {
    from = peer.str();
  } catch (const std::bad_alloc&) {
  }
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& error) {
    if (!is_the_clients_affair(error.code())) warn("the connection from %s failed: %s", from.c_str(), error.what());
  } catch (const std::exception& error) {
    warn("the connection from %s failed: %s", from.c_str(), error.what());
  } catch (...) {
    warn("the connection from %s failed with an unknown exception", from.c_str());
  }
}

std::size_t room_for_connections(std::size_t descriptors_each) noexcept {
  constexpr rlim_t reserve = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t room = limit.rlim_cur - std::min(limit.rlim_cur / 4, reserve);
  return std::max<std::size_t>(room / std::max<std::size_t>(descriptors_each, 1), 1);
}

// The largest number of connections, with room for the slot that a close gives.
std::ptrdiff_t slots_of(const net::serve_options& options) noexcept {
  constexpr std::size_t unlimited = PTRDIFF_MAX - 1;
  const std::size_t most =
      options.max_connections > 0 ? options.max_connections : room_for_connections(options.descriptors_per_connection);
  return static_cast<std::ptrdiff_t>(std::min(most, unlimited));
}

}  // namespace

// Exists as long as its fiber, then makes room for another connection. The group may end it before it has begun.
struct server::connection : served_connection {
  connection(server& server, net::tcp_stream& accepted)
      : served_connection(server, stream), peer(accepted.socket_.get()->peer()), stream(std::move(accepted)) {
    home_.connections_.add();
  }
  ~connection() {
    stream.close();
    home_.slots_.release();
    home_.connections_.done();
  }

  const net::endpoint peer;
  net::tcp_stream stream;  // moved last, because the copy of the peer's endpoint may throw
};

server::server(net::tcp_listener& listener, task_group& group, starter start, const net::serve_options& options,
               std::source_location where)
    : listener_(listener),
      group_(group),
      start_(std::move(start)),
      options_(options),
      where_(where),
      closing_(listener.closing_token()),
      slots_(slots_of(options)) {
  static_cast<void>(this_runtime_state());  // throws before a client is accepted that no fiber could serve
}

void server::run() {
  try {
    accept_all();
    drain();
  } catch (...) {
    group_.request_stop();
    const shield unstopped;
    connections_.wait();
    throw;
  }
}

void server::accept_all() {
  // A close must not wait for the end of a connection. So it gives a slot, with which accept can fail. A connection
  // that is accepted with this slot passes it on.
  const std::stop_callback at_close(closing_, [this]() noexcept {
    take_backlog();
    slots_.release();
  });
  for (;;) {
    slots_.acquire();
    std::error_code error;
    net::tcp_stream accepted;
    try {
      accepted = listener_.accept(error);
    } catch (const std::bad_alloc&) {
      slots_.release();
      sleep_until(now_ns() + scarcity_pause);
      continue;
    }
    if (error == std::errc::bad_file_descriptor) return;
    if (error) fail(error, "ulexite: accepting at " + listener_.local_endpoint().str());
    youngest_ = now_ns();
    if (closing_.stop_requested()) {
      waiting_.push_back(std::move(accepted));
      slots_.release();
    } else if (!start(accepted, [this] { return closing_.stop_requested(); })) {
      waiting_.push_back(std::move(accepted));
    }
  }
}

// Called by the thread that closes the listener, just before the close, which would reset the connections in the
// backlog. If descriptors or memory run out, the close resets the rest. There is a limit, because clients may connect
// as fast as they are accepted.
void server::take_backlog() noexcept try {
  constexpr std::size_t most = 65'536;
  while (backlog_.size() < most) {
    std::error_code error;
    net::tcp_stream accepted = listener_.accept_at_once(error);
    if (error) return;
    backlog_.push_back(std::move(accepted));
  }
} catch (const std::bad_alloc&) {
}

// Starts the fiber of a connection that has a slot. While there is no room for it, in the runtime or the group, the
// connection waits, and the backlog waits behind it, until `over` returns true. Then it returns false, with the
// connection as before and its slot free. So fibers that do not end cannot delay the start of the drain.
template <class Over>
bool server::start(net::tcp_stream& accepted, Over over) {
  std::shared_ptr<connection> made;
  do {
    const std::int64_t soon = now_ns() + scarcity_pause;
    try {
      if (!made) made = std::make_shared<connection>(*this, accepted);
      const steady_clock::time_point time{std::chrono::nanoseconds(soon)};
      if (start_(group_, time, made, where_)) return true;
      continue;
    } catch (const std::system_error& error) {
      if (error.code() != errc::limit_reached && error.code() != std::errc::not_enough_memory) throw;
    } catch (const std::bad_alloc&) {
    }
    sleep_until(soon);
  } while (!over());
  if (made) {
    accepted = std::move(made->stream);
  } else {
    slots_.release();
  }
  return false;
}

served_connection::served_connection(server& home, net::tcp_stream& stream) noexcept
    : home_(home), stream_(stream), closing_(home.ending_.get_token()) {}

void served_connection::begin() const {
  if (const std::string& name = home_.options_.name; !name.empty()) this_fiber::set_name(name);
}

void served_connection::end_reads() noexcept { stream_.shutdown_read(); }

// Reports the exception that is being handled, unless it is that of a fiber that was asked to stop.
void served_connection::failed() const {
  try {
    throw;
  } catch (const operation_cancelled&) {
    if (this_fiber::stop_requested()) throw;  // otherwise it met its own deadline
  } catch (...) {
  }
  const std::exception_ptr failure = std::current_exception();
  const net::endpoint& peer = static_cast<const server::connection&>(*this).peer;
  home_.options_.on_error ? home_.options_.on_error(peer, failure) : report_on_stderr(peer, failure);
}

// The grace left for the connection that was accepted last.
std::int64_t server::grace_left() const noexcept {
  if (!backlog_.empty()) return options_.grace.count();
  return std::max<std::int64_t>(options_.grace.count() - (now_ns() - youngest_), 0);
}

// The connections that were accepted at the close begin as there is room. Most room appears when the other connections
// are notified.
void server::drain() {
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(backlog_));
  const auto at = [](std::int64_t time) { return steady_clock::time_point(std::chrono::nanoseconds(time)); };
  const auto end = at(relative_timeout(options_.drain_time).deadline());
  const auto told = std::min(end, at(relative_timeout(std::chrono::nanoseconds(grace_left())).deadline()));
  auto next = backlog_.begin();
  const auto start_until = [&](steady_clock::time_point time) {
    const auto over = [time] { return steady_clock::now() >= time; };
    for (; next != backlog_.end() && slots_.try_acquire_until(time); ++next)
      if (!start(*next, over)) return;
  };
  start_until(told);
  static_cast<void>(connections_.wait_until(told));  // ends early if all have ended
  run_stop_callbacks(ending_);
  start_until(end);
  backlog_.clear();
  if (connections_.wait_until(end)) return;
  group_.request_stop();
  connections_.wait();
}

}  // namespace ulexite::detail
