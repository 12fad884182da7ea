#pragma once

// The simulated network behind testing/network.hpp: a table of sockets, and the messages between them.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/kernel.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/testing/network.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace ulexite::testing {

class memory_network final : public detail::simulated_network {
 public:
  memory_network(const network_options& options, detail::controller& by) noexcept : options_(options), by_(by) {}

  // Begins a run: no socket is open.
  void clear() noexcept;
  // The number of sockets for which the program has a descriptor.
  [[nodiscard]] std::size_t open_sockets() const noexcept;

  // Makes a connected pair, and returns its descriptors. See network.hpp.
  std::pair<int, int> make_pair();
  void partition(const net::endpoint& server);
  void heal(const net::endpoint& server);
  std::size_t reset_connections(const net::endpoint& server);

  int socket(int family, int type) noexcept override;
  int bind(int fd, const sockaddr* at, socklen_t size) noexcept override;
  int listen(int fd, int backlog) noexcept override;
  int accept(int fd, sockaddr* peer, socklen_t* size) noexcept override;
  int connect(int fd, const sockaddr* to, socklen_t size) noexcept override;
  ssize_t receive(int fd, msghdr& into, int flags) noexcept override;
  ssize_t send(int fd, const msghdr& from) noexcept override;
  int shutdown(int fd, int how) noexcept override;
  int set_option(int fd, int level, int name, const void* value, socklen_t size) noexcept override;
  int get_option(int fd, int level, int name, void* value, socklen_t* size) noexcept override;
  int name_of(int fd, bool peer, sockaddr* name, socklen_t* size) noexcept override;
  int close(int fd) noexcept override;
  int poll(pollfd* queries, nfds_t count) noexcept override;
  void watch(int fd, detail::fd_source& source) override;
  void unwatch(detail::fd_source& source) noexcept override;
  std::int64_t next_arrival() noexcept override;
  void arrive(std::int64_t now) noexcept override;

 private:
  enum class phase : std::uint8_t { fresh, listening, connecting, connected, refused };

  struct socket_state {
    phase at = phase::fresh;
    net::endpoint local, peer;
    net::endpoint server;  // the listener's, of this connection
    std::vector<detail::fd_source*> sources;
    std::deque<int> backlog;   // of a listener
    int other = -1;            // the other end
    std::string inbox;         // arrived bytes that were not read
    std::size_t incoming = 0;  // bytes on their way here
    std::int64_t last_arrival = 0;
    bool ended = false;         // the peer sends no more; of a listener: it was shut down
    bool reading_shut = false;  // by its own shutdown
    bool end_sent = false;      // a write fails with EPIPE
    bool dead = false;          // a reset has ended the connection
    bool was_reset = false;     // reported by the next call; the bytes that arrived before are read first
    bool accepted = true;       // false: the program has no descriptor of it yet
    bool close_resets = false;
    bool shares_port = false;  // SO_REUSEPORT
  };

  // A message on its way to a socket.
  struct message {
    enum { bytes, end, reset, connection, established, refusal } what;
    std::string data{};
    int from = -1;  // of bytes: the sender; of a connection: the server's end
  };

  [[nodiscard]] static bool takes(const net::endpoint& bound, const net::endpoint& at);
  [[nodiscard]] socket_state* find(int fd) noexcept;
  [[nodiscard]] static bool is_listening(const socket_state& each) noexcept;
  [[nodiscard]] int find_listener(const net::endpoint& at) noexcept;
  [[nodiscard]] bool is_cut(const net::endpoint& server) const noexcept;
  [[nodiscard]] bool is_cut(int to, const message& what) noexcept;
  int add(socket_state made);
  void post(int to, message what);
  void deliver(int to, message& what) noexcept;
  void tell(socket_state& of, bool readable, bool writable, bool hung_up) noexcept;
  void break_off(socket_state& of) noexcept;
  void end_listening(socket_state& of) noexcept;
  void end_writes_of_peer(const socket_state& of) noexcept;
  void reset(int fd) noexcept;
  void refuse(int fd) noexcept;
  void end_backlog(socket_state& of) noexcept;
  void bounce(const message& what) noexcept;
  void drop(socket_state& of) noexcept;
  [[nodiscard]] bool happens(unsigned one_in) noexcept;
  [[nodiscard]] std::size_t part_of(std::size_t whole) noexcept;
  [[nodiscard]] std::size_t room(const socket_state& to) const noexcept;
  [[nodiscard]] short readiness_of(socket_state& of) noexcept;

  const network_options& options_;
  detail::controller& by_;
  std::map<int, socket_state> sockets_;
  std::map<detail::fd_source*, int> watched_;                       // each source of one socket
  std::multimap<std::int64_t, std::pair<int, message>> under_way_;  // by time of arrival
  std::vector<std::pair<int, message>> held_;                       // by partitions
  std::vector<net::endpoint> cut_;                                  // the listeners behind a partition
  int next_fd_ = first_fd;                // a run uses no number again, so a stale one meets no other socket
  std::uint16_t next_port_ = first_port;  // for port 0, and for the client's end

  static constexpr std::uint16_t first_port = 49152;
};

}  // namespace ulexite::testing
