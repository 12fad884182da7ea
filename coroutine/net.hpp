#pragma once

// The waits of sockets for coroutines. Each is named as the function that blocks, with co_ before it, and the object is
// its first argument. Errors are those of its throwing form.

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/net/fds_wait.hpp>
#include <ulexite/net/socket/socket_wait.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {

struct socket_operations {
  template <class Socket>
  static socket* of(const Socket& which) noexcept {
    return which.socket_.get();
  }
  // The socket. Clears `error`, or sets bad_file_descriptor if there is none.
  template <class Socket>
  static socket* of(const Socket& which, std::error_code& error) noexcept {
    return which.socket_.get(error);
  }

  // An operation of one attempt(deadline, error), whose value finish(error, value) turns into the result.
  template <class Attempt, class Finish>
  class call final : public socket_wait {
   public:
    call(socket* on, bool reads, Attempt attempt, Finish finish) noexcept
        : socket_wait(on, reads), attempt_(std::move(attempt)), finish_(std::move(finish)) {}
    auto result() {
      rethrow();
      return finish_(error_, value_);
    }

   private:
    void attempt(std::int64_t deadline) override { value_ = attempt_(deadline, error_); }
    Attempt attempt_;
    Finish finish_;
    std::invoke_result_t<Attempt&, std::int64_t, std::error_code&> value_{};
  };

  // Throws the error, or gives the number back.
  template <class Socket>
  static auto reporting(const Socket& whose, const char* doing) noexcept {
    return [&whose, doing](const std::error_code& error, std::size_t value) {
      whose.throw_if(error, doing);
      return value;
    };
  }

  // Reads or writes. With `whole` it ends when all bytes have been transferred, or at the stream's end.
  static auto transfer(net::tcp_stream& stream, const void* data, std::size_t size, bool reads, bool whole) {
    const auto attempt = [=, &stream, done = std::size_t{0}](std::int64_t deadline, std::error_code& error) mutable {
      socket* const on = of(stream, error);
      if (!on) return done;
      if (size == 0 && !stream.is_open()) error = std::make_error_code(std::errc::bad_file_descriptor);
      for (std::size_t more = size - done; more > 0;) {
        const iovec rest{static_cast<char*>(const_cast<void*>(data)) + done, size - done};
        more = reads ? net::tcp_stream::receive_some(*on, {&rest, 1}, deadline, error)
                     : net::tcp_stream::send_some(*on, {&rest, 1}, deadline, error);
        done += more;
        if (error || !whole || done == size) break;
        spend_budget();  // the peer may be as fast as this loop
      }
      return done;
    };
    return call(of(stream), reads, attempt, reporting(stream, reads ? "reading from" : "writing to"));
  }
  static auto read(net::tcp_stream& from, void* into, std::size_t size, bool whole) {
    return transfer(from, into, size, true, whole);
  }
  static auto write(net::tcp_stream& to, const void* data, std::size_t size, bool whole) {
    return transfer(to, data, size, false, whole);
  }
  // Small, because idle connections keep it.
  template <class Socket>
  class readable final : public socket_wait {
   public:
    explicit readable(Socket& which) noexcept : socket_wait(of(which), true, true), which_(which) {}
    void result() {
      rethrow();
      which_.throw_if(error_, "reading from");
    }

   private:
    void attempt(std::int64_t deadline) override {
      socket* const on = of(which_, error_);
      if (!on) return;
      if constexpr (std::is_same_v<Socket, net::tcp_stream>) {
        char first;
        net::tcp_stream::peek_some(*on, &first, sizeof first, deadline, error_);
      } else {
        net::udp_socket::peek(*on, deadline, error_);
      }
    }
    Socket& which_;
  };
  static auto accept(net::tcp_listener& at, net::endpoint* peer) {
    const auto accept_one = [&at, peer](std::int64_t deadline, std::error_code& error) {
      net::endpoint whose;
      net::tcp_stream accepted = at.accept_until(deadline, whose, error);
      if (peer && !error) *peer = whose;
      return accepted;
    };
    return call(of(at), true, accept_one, [&at](const std::error_code& error, net::tcp_stream& accepted) {
      if (error) net::tcp_listener::fail_to_accept(at, error);
      return std::move(accepted);
    });
  }
  static auto receive(net::udp_socket& at, void* into, std::size_t size, net::endpoint* from) {
    const auto receive_one = [=, &at](std::int64_t deadline, std::error_code& error) {
      return at.receive_until(deadline, into, size, from, error);
    };
    return call(of(at), true, receive_one, reporting(at, "receiving from"));
  }
  static auto send(net::udp_socket& by, const void* data, std::size_t size, const net::endpoint* to) {
    const auto send_one = [=, &by](std::int64_t deadline, std::error_code& error) {
      by.send_until(deadline, data, size, to, error);
      return 0;
    };
    return call(of(by), false, send_one,
                [&by, to](const std::error_code& error, int) { by.throw_if_unsent(error, to); });
  }
  static ulexite::task<net::tcp_stream> connect(net::endpoint to, net::connect_options options) {
    std::error_code error;
    net::tcp_stream made = net::tcp_stream::to_connect(to, options, error);
    if (!error) {
      if (options.timeout) made.writes_expire_after(*options.timeout);
      const auto connect_once = [&](std::int64_t deadline, std::error_code& failure) {
        made.connect_until(deadline, to, failure);
        return 0;
      };
      error = co_await call(of(made), false, connect_once, [](const std::error_code& end, int) { return end; });
      made.writes_expire_never();
    }
    if (error) net::tcp_stream::fail_to_connect(error, to.str(), options);
    co_return made;
  }
};

struct fd_place {
  net::fd_interest only;
};
// A wait for one descriptor.
class fd_operation final : fd_place, public fds_wait {
 public:
  fd_operation(int fd, net::interest wanted, std::int64_t deadline) noexcept
      : fd_place{{fd, wanted}}, fds_wait({&only, 1}, deadline) {}
  net::interest result() const {
    static_cast<void>(fds_wait::result());
    return only.ready;
  }
};

}  // namespace detail

// Waits until a read would not wait, also for the end of the stream or an error. It needs no buffer, so an idle
// connection costs little; then an ordinary read, in a function of any kind, gets what has come. For datagrams the
// same.
[[nodiscard]] inline auto co_readable(net::tcp_stream& which) {
  return detail::socket_operations::readable<net::tcp_stream>(which);
}
[[nodiscard]] inline auto co_readable(net::udp_socket& which) {
  return detail::socket_operations::readable<net::udp_socket>(which);
}

// The same for a stream over another stream: a net::buffered_reader, a tls_stream. If bytes that were read below are
// there, it returns at once: they may be only a part of a line, or the end of a message.
template <class Stream>
  requires requires(Stream& of) {
    { of.is_readable() } -> std::same_as<bool>;
    of.next_layer();
  }
task<> co_readable(Stream& of) {
  if (!of.is_readable()) co_await co_readable(of.next_layer());
}

// As tcp_stream::read_some, read, write_some and write.
[[nodiscard]] inline auto co_read_some(net::tcp_stream& from, void* into, std::size_t size) {
  return detail::socket_operations::read(from, into, size, false);
}
[[nodiscard]] inline auto co_read(net::tcp_stream& from, void* into, std::size_t size) {
  return detail::socket_operations::read(from, into, size, true);
}
[[nodiscard]] inline auto co_write_some(net::tcp_stream& to, const void* data, std::size_t size) {
  return detail::socket_operations::write(to, data, size, false);
}
[[nodiscard]] inline auto co_write(net::tcp_stream& to, const void* data, std::size_t size) {
  return detail::socket_operations::write(to, data, size, true);
}
[[nodiscard]] inline auto co_write(net::tcp_stream& to, std::string_view text) {
  return detail::socket_operations::write(to, text.data(), text.size(), true);
}

// As udp_socket::receive_from, receive, send_to and send. A send_to over Unix sockets keeps the stack while it waits.
// Of several fibers that receive, or send, at one socket, at most one gives its stack up.
[[nodiscard]] inline auto co_receive_from(net::udp_socket& at, void* into, std::size_t size, net::endpoint& from) {
  return detail::socket_operations::receive(at, into, size, &from);
}
[[nodiscard]] inline auto co_receive(net::udp_socket& at, void* into, std::size_t size) {
  return detail::socket_operations::receive(at, into, size, nullptr);
}
[[nodiscard]] inline auto co_send_to(net::udp_socket& by, const void* data, std::size_t size, const net::endpoint& to) {
  return detail::socket_operations::send(by, data, size, &to);
}
[[nodiscard]] inline auto co_send_to(net::udp_socket& by, std::string_view text, const net::endpoint& to) {
  return detail::socket_operations::send(by, text.data(), text.size(), &to);
}
[[nodiscard]] inline auto co_send(net::udp_socket& by, const void* data, std::size_t size) {
  return detail::socket_operations::send(by, data, size, nullptr);
}
[[nodiscard]] inline auto co_send(net::udp_socket& by, std::string_view text) {
  return detail::socket_operations::send(by, text.data(), text.size(), nullptr);
}

// As tcp_stream::connect to one endpoint. A Unix listener with a full backlog keeps the stack.
inline task<net::tcp_stream> co_connect(const net::endpoint& to, const net::connect_options& options = {}) {
  return detail::socket_operations::connect(to, options);
}

// As wait_any and wait_fd. `fds` must outlive the wait.
[[nodiscard]] inline auto co_wait_any(std::span<net::fd_interest> fds, absolute_timeout limit = {}) {
  return detail::fds_wait(fds, limit.deadline());
}
template <std::convertible_to<relative_timeout> Time>
[[nodiscard]] auto co_wait_any(std::span<net::fd_interest> fds, Time limit) {
  return detail::fds_wait(fds, relative_timeout(limit).deadline());
}
[[nodiscard]] inline auto co_wait_fd(int fd, net::interest wanted, absolute_timeout limit = {}) {
  return detail::fd_operation(fd, wanted, limit.deadline());
}
template <std::convertible_to<relative_timeout> Time>
[[nodiscard]] auto co_wait_fd(int fd, net::interest wanted, Time limit) {
  return detail::fd_operation(fd, wanted, relative_timeout(limit).deadline());
}

// Former forms, which 0.2 will not have.
[[nodiscard, deprecated("use co_read_some(from, into, size)")]] inline auto co_read_some(net::tcp_stream& from,
                                                                                         std::span<std::byte> into) {
  return detail::socket_operations::read(from, into.data(), into.size(), false);
}
[[nodiscard, deprecated("use co_read(from, into, size)")]] inline auto co_read(net::tcp_stream& from,
                                                                               std::span<std::byte> into) {
  return detail::socket_operations::read(from, into.data(), into.size(), true);
}

// As tcp_listener::accept.
[[nodiscard]] inline auto co_accept(net::tcp_listener& at) { return detail::socket_operations::accept(at, nullptr); }
[[nodiscard]] inline auto co_accept(net::tcp_listener& at, net::endpoint& peer) {
  return detail::socket_operations::accept(at, &peer);
}

}  // namespace ulexite
