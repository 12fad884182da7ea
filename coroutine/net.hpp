#pragma once

// The waits of sockets for coroutines. Each is named as the function that blocks, with co_ before it, and the object is
// its first argument. Errors are those of its throwing form.

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/net/socket/socket_wait.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>

#include <sys/uio.h>

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

  // An operation of a number of bytes. With `whole` it ends when all have been transferred, or at the stream's end.
  class transfer : public socket_wait {
   public:
    std::size_t result() {
      rethrow();
      stream_.throw_if(error_, reads_ ? "reading from" : "writing to");
      return done_;
    }

   protected:
    transfer(net::tcp_stream& stream, const void* data, std::size_t size, bool reads, bool whole)
        : socket_wait(of(stream), reads), stream_(stream), data_(data), size_(size), reads_(reads), whole_(whole) {}

   private:
    void attempt(std::int64_t deadline) override {
      socket* const on = of(stream_, error_);
      if (!on) return;
      if (size_ == 0 && !stream_.is_open()) error_ = std::make_error_code(std::errc::bad_file_descriptor);
      for (std::size_t more = size_ - done_; more > 0;) {
        const iovec rest{static_cast<char*>(const_cast<void*>(data_)) + done_, size_ - done_};
        more = reads_ ? net::tcp_stream::receive_some(*on, {&rest, 1}, deadline, error_)
                      : net::tcp_stream::send_some(*on, {&rest, 1}, deadline, error_);
        done_ += more;
        if (error_ || !whole_ || done_ == size_) return;
      }
    }

    net::tcp_stream& stream_;
    const void* const data_;
    const std::size_t size_;
    const bool reads_, whole_;
    std::size_t done_ = 0;
  };
  class read final : public transfer {
   public:
    read(net::tcp_stream& from, void* into, std::size_t size, bool whole) : transfer(from, into, size, true, whole) {}
  };
  class write final : public transfer {
   public:
    write(net::tcp_stream& to, const void* data, std::size_t size, bool whole)
        : transfer(to, data, size, false, whole) {}
  };

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

  class accept final : public socket_wait {
   public:
    accept(net::tcp_listener& at, net::endpoint* peer) noexcept : socket_wait(of(at), true), at_(at), peer_(peer) {}
    net::tcp_stream result() {
      rethrow();
      if (error_) net::tcp_listener::fail_to_accept(at_, error_);
      return std::move(accepted_);
    }

   private:
    void attempt(std::int64_t deadline) override {
      net::endpoint peer;
      accepted_ = at_.accept_until(deadline, peer, error_);
      if (peer_ && !error_) *peer_ = peer;
    }
    net::tcp_listener& at_;
    net::endpoint* const peer_;
    net::tcp_stream accepted_;
  };
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
