#pragma once

// Datagrams, over UDP or over Unix sockets: the family of the endpoint decides.
//
// The rules of all operations (errors, threads, time limits) are in socket_base.hpp. A datagram arrives whole or not at
// all, and may be empty. Over UDP it may get lost, arrive twice, or overtake another. Over Unix sockets a sender waits
// while its receiver has too many unread datagrams.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/socket_base.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

namespace ulexite::net {

// How a udp_socket is bound.
struct udp_options {
  bool reuse_port = false;  // SO_REUSEPORT: several sockets share one port; each peer's datagrams go to one of them
  bool broadcast = false;   // SO_BROADCAST: may send to broadcast addresses
};

// Sends and receives datagrams. Any number of fibers and threads may send and receive at the same time; those that must
// wait take turns, oldest first. Movable while it is not in use. For its close, expiry, endpoints and descriptor see
// socket_base.
class udp_socket : public socket_base {
 public:
  // No socket: all operations except connect fail with bad_file_descriptor.
  udp_socket() noexcept = default;
  // Binds to an endpoint. Port 0 takes a free port: see local_endpoint. The path of a Unix socket must not exist; the
  // close removes it. Never waits. Throws std::system_error that names the endpoint.
  explicit udp_socket(const endpoint& at, udp_options options = {});
  // Takes over the descriptor of a datagram socket (of socketpair, too) and makes it non-blocking. Throws
  // std::system_error, and then leaves it open.
  [[nodiscard]] static udp_socket adopt(int fd);

  // Sets the peer: send goes there, and datagrams from others are no longer received. Over UDP a later send or receive
  // then also reports errors of the peer, such as connection_refused if its port is not in use. May be called again for
  // another peer. An object without a socket gets one, unbound: UDP then assigns a port, but over Unix sockets no peer
  // can answer. A closed one fails with bad_file_descriptor. Never waits, not a cancellation point. Not at the same
  // time as another call of connect. The throwing form names the endpoint.
  void connect(const endpoint& to, std::error_code& error);
  void connect(const endpoint& to);

  // Sends one datagram. Waits while there is no room for it. Errors: message_size if it is too long for the network.
  // destination_address_required from send without a peer, over Unix sockets not_connected. connection_refused and
  // no_such_file_or_directory if the Unix socket has no receiver. An error of an earlier datagram is reported instead
  // of sending this one.
  void send_to(const void* data, std::size_t size, const endpoint& to, std::error_code& error);
  void send_to(const void* data, std::size_t size, const endpoint& to);
  void send_to(std::string_view text, const endpoint& to, std::error_code& error) {
    send_to(text.data(), text.size(), to, error);
  }
  void send_to(std::string_view text, const endpoint& to) { send_to(text.data(), text.size(), to); }

  // Like send_to, to the peer that connect has set.
  void send(const void* data, std::size_t size, std::error_code& error);
  void send(const void* data, std::size_t size);
  void send(std::string_view text, std::error_code& error) { send(text.data(), text.size(), error); }
  void send(std::string_view text) { send(text.data(), text.size()); }

  // Receives one datagram and its sender. The sender is no endpoint for a Unix socket without a name, or on an error
  // but message_size. Waits while there is no datagram. Returns the size, which may be 0. If the datagram is longer
  // than `size`, the error is message_size. The buffer then has its first bytes, the error_code form returns their
  // number, and the rest is lost.
  std::size_t receive_from(void* data, std::size_t size, endpoint& from, std::error_code& error);
  std::size_t receive_from(void* data, std::size_t size, endpoint& from);

  // Like receive_from, without the sender.
  std::size_t receive(void* data, std::size_t size, std::error_code& error);
  std::size_t receive(void* data, std::size_t size);

  // Former forms, which 0.2 will not have.
  [[deprecated("use send_to(data, size, to)")]] void send_to(std::span<const std::byte> data, const endpoint& to) {
    send_to(data.data(), data.size(), to);
  }
  [[deprecated("use send(data, size)")]] void send(std::span<const std::byte> data) { send(data.data(), data.size()); }
  [[deprecated("use receive_from(data, size, from)")]] std::size_t receive_from(std::span<std::byte> data,
                                                                                endpoint& from) {
    return receive_from(data.data(), data.size(), from);
  }
  [[deprecated("use receive(data, size)")]] std::size_t receive(std::span<std::byte> data) {
    return receive(data.data(), data.size());
  }

 private:
  friend struct detail::socket_operations;
  using socket_base::socket_base;
  // As receive_from, send_to and send, until `deadline` instead of the expiry. `from` may be null; without `to` it is
  // send.
  std::size_t receive_until(std::int64_t deadline, void* data, std::size_t size, endpoint* from,
                            std::error_code& error);
  void send_until(std::int64_t deadline, const void* data, std::size_t size, const endpoint* to,
                  std::error_code& error);
  void throw_if_unsent(const std::error_code& error, const endpoint* to) const;
  // Waits for a datagram, until `deadline`, and leaves it to be received.
  static void peek(detail::socket& at, std::int64_t deadline, std::error_code& error);
};

}  // namespace ulexite::net
