// The simulated network: the calls that a program makes on its sockets.

#include <ulexite/testing/memory_network.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace ulexite::testing {
namespace {

// Reads an endpoint; returns 0 or -errno.
int read_endpoint(const sockaddr* from, socklen_t size, net::endpoint& into) noexcept try {
  into = net::endpoint::from(from, size);
  return 0;
} catch (const std::invalid_argument&) {
  return -EINVAL;
} catch (const std::bad_alloc&) {
  return -ENOMEM;
}

int write_endpoint(const net::endpoint& from, sockaddr* into, socklen_t* size) noexcept {
  std::memcpy(into, from.data(), std::min(*size, from.size()));
  *size = from.size();
  return 0;
}

// The address with another port.
net::endpoint with_port(net::endpoint at, std::uint16_t port) {
  sockaddr_storage changed{};
  std::memcpy(&changed, at.data(), at.size());
  if (at.family() == net::address_family::ipv4) {
    reinterpret_cast<sockaddr_in&>(changed).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(changed).sin6_port = htons(port);
  }
  return net::endpoint::from(reinterpret_cast<const sockaddr*>(&changed), at.size());
}

bool is_ip(const net::endpoint& at) noexcept { return at.family() != net::address_family::local; }

std::size_t total(const msghdr& of) noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < of.msg_iovlen; ++i) sum += of.msg_iov[i].iov_len;
  return sum;
}

void scatter(const std::string& data, std::size_t count, const msghdr& into) noexcept {
  std::size_t done = 0;
  for (std::size_t i = 0; i < into.msg_iovlen && done < count; ++i) {
    const std::size_t part = std::min(into.msg_iov[i].iov_len, count - done);
    std::memcpy(into.msg_iov[i].iov_base, data.data() + done, part);
    done += part;
  }
}

std::string gather(const msghdr& from, std::size_t count) {
  std::string data;
  for (std::size_t i = 0; i < from.msg_iovlen && data.size() < count; ++i)
    data.append(static_cast<const char*>(from.msg_iov[i].iov_base),
                std::min(from.msg_iov[i].iov_len, count - data.size()));
  return data;
}

}  // namespace

// Whether a listener at `bound` accepts connections to `at`. A listener at 0.0.0.0 accepts all IPv4 for its port, one
// at [::] accepts IPv6 too.
bool memory_network::takes(const net::endpoint& bound, const net::endpoint& at) {
  if (bound == at) return true;
  if (!is_ip(bound) || !is_ip(at) || bound.port() != at.port()) return false;
  const std::string text = bound.str();
  return text.starts_with("[::]:") || (text.starts_with("0.0.0.0:") && at.family() == net::address_family::ipv4);
}

bool memory_network::is_listening(const socket_state& each) noexcept {
  return each.at == phase::listening && !each.ended;
}

// The listener that gets a connection to `at`, or -1. As on Linux, one at exactly this address comes before one at all
// addresses. Among listeners that share the port the strategy chooses.
int memory_network::find_listener(const net::endpoint& at) noexcept {
  std::vector<int> exact, wide;
  for (const auto& [fd, each] : sockets_)
    if (is_listening(each) && takes(each.local, at)) (each.local == at ? exact : wide).push_back(fd);
  const std::vector<int>& those = exact.empty() ? wide : exact;
  return those.empty() ? -1 : those[by_.choose(static_cast<std::uint32_t>(those.size()))];
}

// True once in `one_in` times; in a run without choices never, unless it is always true.
bool memory_network::happens(unsigned one_in) noexcept {
  return one_in == 1 || (one_in > 1 && by_.choose(one_in) == 1);
}

std::size_t memory_network::part_of(std::size_t whole) noexcept {
  if (!options_.short_reads || whole <= 1) return whole;
  switch (by_.choose(4)) {
    case 1: return 1;
    case 2: return whole / 2;
    case 3: return whole - 1;
    default: return whole;
  }
}

int memory_network::socket(int family, int type) noexcept {
  if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM) return -ESOCKTNOSUPPORT;
  socket_state made;
  switch (family) {
    case AF_INET: made.local = net::endpoint::ip("127.0.0.1", 0); break;
    case AF_INET6: made.local = net::endpoint::ip("::1", 0); break;
    default: {
      sockaddr unnamed{};
      unnamed.sa_family = AF_UNIX;
      made.local = net::endpoint::from(&unnamed, sizeof unnamed.sa_family);
    }
  }
  return add(std::move(made));
}

std::pair<int, int> memory_network::make_pair() {
  socket_state one, two;
  one.at = two.at = phase::connected;
  one.local = two.peer = net::endpoint::ip("127.0.0.1", next_port_++);
  one.peer = one.server = two.local = two.server = net::endpoint::ip("127.0.0.1", next_port_++);
  const int first = add(std::move(one));
  const int second = add(std::move(two));
  sockets_[first].other = second;
  sockets_[second].other = first;
  return {first, second};
}

int memory_network::bind(int fd, const sockaddr* at, socklen_t size) noexcept {
  socket_state* const made = find(fd);
  if (!made) return -EBADF;
  net::endpoint wanted;
  if (const int result = read_endpoint(at, size, wanted); result < 0) return result;
  if (is_ip(wanted) && wanted.port() == 0) wanted = with_port(wanted, next_port_++);
  for (const auto& [other, each] : sockets_) {
    const bool overlaps = is_listening(each) && (takes(each.local, wanted) || takes(wanted, each.local));
    if (overlaps && !(made->shares_port && each.shares_port)) return -EADDRINUSE;
  }
  made->local = wanted;
  return 0;
}

int memory_network::listen(int fd, int) noexcept {
  socket_state* const made = find(fd);
  if (!made) return -EBADF;
  made->at = phase::listening;
  return 0;
}

int memory_network::accept(int fd, sockaddr* peer, socklen_t* size) noexcept {
  socket_state* const listener = find(fd);
  if (!listener) return -EBADF;
  if (listener->ended) return -EINVAL;
  if (listener->backlog.empty()) return -EAGAIN;
  const int accepted = listener->backlog.front();
  listener->backlog.pop_front();
  sockets_[accepted].accepted = true;
  write_endpoint(sockets_[accepted].peer, peer, size);
  return accepted;
}

int memory_network::connect(int fd, const sockaddr* to, socklen_t size) noexcept {
  socket_state* from = find(fd);
  if (!from) return -EBADF;
  switch (from->at) {
    case phase::connecting: return -EALREADY;
    case phase::connected: return from->was_reset ? -ECONNRESET : -EISCONN;
    case phase::refused: from->at = phase::fresh; return -ECONNREFUSED;
    default: break;
  }
  net::endpoint server;
  if (const int result = read_endpoint(to, size, server); result < 0) return result;
  if (is_ip(server) && from->local.port() == 0) from->local = with_port(from->local, next_port_++);
  from->peer = from->server = server;
  from->at = phase::connecting;
  if (const int listener = find_listener(server); listener < 0) {
    post(fd, {message::refusal});
  } else {
    socket_state accepted;
    accepted.at = phase::connected;
    accepted.local = server;
    accepted.server = from->server = find(listener)->local;
    accepted.peer = from->local;
    accepted.other = fd;
    accepted.accepted = false;
    const int other = add(std::move(accepted));
    from = find(fd);
    from->other = other;
    post(listener, {.what = message::connection, .from = other});
    post(fd, {message::established});
  }
  if (from->at == phase::connecting) return -EINPROGRESS;
  return from->at == phase::connected ? 0 : -ECONNREFUSED;
}

ssize_t memory_network::receive(int fd, msghdr& into, int flags) noexcept {
  socket_state* const from = find(fd);
  if (!from) return -EBADF;
  if (from->at != phase::connected) return -ENOTCONN;
  if (happens(options_.resets)) reset(fd);
  into.msg_controllen = into.msg_namelen = 0;
  into.msg_flags = 0;
  if (from->inbox.empty()) {
    if (std::exchange(from->was_reset, false)) return -ECONNRESET;
    return from->ended || from->reading_shut ? 0 : -EAGAIN;
  }
  const std::size_t count = part_of(std::min(total(into), from->inbox.size()));
  const bool was_full = room(*from) == 0;
  scatter(from->inbox, count, into);
  if (flags & MSG_PEEK) return static_cast<ssize_t>(count);
  from->inbox.erase(0, count);
  if (socket_state* const writer = find(from->other); writer && was_full && count > 0)
    tell(*writer, false, true, false);
  return static_cast<ssize_t>(count);
}

ssize_t memory_network::send(int fd, const msghdr& from) noexcept {
  socket_state* const by = find(fd);
  if (!by) return -EBADF;
  if (by->at != phase::connected) return by->at == phase::connecting ? -EAGAIN : -ENOTCONN;
  if (happens(options_.resets)) reset(fd);
  if (is_ip(by->local) && std::exchange(by->was_reset, false)) return -ECONNRESET;  // a Unix socket leaves it to reads
  if (by->end_sent) return -EPIPE;
  socket_state* const to = find(by->other);
  if (!to) {  // it was closed: a reset answers the first bytes
    const std::size_t count = total(from);
    post(fd, {message::reset});
    return static_cast<ssize_t>(count);
  }
  const std::size_t free = room(*to);
  if (free == 0) return -EAGAIN;
  const std::size_t count = part_of(std::min(total(from), free));
  post(by->other, {message::bytes, gather(from, count), fd});
  return static_cast<ssize_t>(count);
}

int memory_network::shutdown(int fd, int how) noexcept {
  socket_state* const at = find(fd);
  if (!at) return -EBADF;
  if (at->at == phase::connected && how != SHUT_RD && !std::exchange(at->end_sent, true))
    post(at->other, {message::end});
  if (how != SHUT_WR && at->at == phase::listening) {
    end_listening(*at);
  } else if (how != SHUT_WR) {
    at->reading_shut = true;
    end_writes_of_peer(*at);
    tell(*at, true, false, true);
  }
  return at->at == phase::connected || at->at == phase::listening ? 0 : -ENOTCONN;
}

void memory_network::end_listening(socket_state& of) noexcept {
  of.ended = true;
  end_backlog(of);
  tell(of, true, false, true);
}

// The peer of a Unix socket learns at once that it will not be read, because both ends are in one kernel.
void memory_network::end_writes_of_peer(const socket_state& of) noexcept {
  socket_state* const writer = is_ip(of.local) ? nullptr : find(of.other);
  if (!writer) return;
  writer->end_sent = true;
  tell(*writer, false, true, false);
}

int memory_network::set_option(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  socket_state* const at = find(fd);
  if (!at) return -EBADF;
  if (level == SOL_SOCKET && name == SO_LINGER && size == sizeof(linger)) {
    linger wanted;
    std::memcpy(&wanted, value, sizeof wanted);
    at->close_resets = is_ip(at->local) && wanted.l_onoff != 0 && wanted.l_linger == 0;
  }
  if (level == SOL_SOCKET && name == SO_REUSEPORT && size == sizeof(int)) {
    int wanted;
    std::memcpy(&wanted, value, sizeof wanted);
    at->shares_port = wanted != 0;
  }
  return 0;
}

int memory_network::get_option(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  socket_state* const at = find(fd);
  if (!at) return -EBADF;
  if (level == SOL_SOCKET && name == SO_PEERCRED) return -ENOPROTOOPT;  // there is no peer process
  int answer = 0;
  if (level == SOL_SOCKET && name == SO_DOMAIN) answer = at->local.data()->sa_family;
  if (level == SOL_SOCKET && name == SO_TYPE) answer = SOCK_STREAM;
  if (level == SOL_SOCKET && name == SO_PROTOCOL) answer = is_ip(at->local) ? IPPROTO_TCP : 0;
  if (level == SOL_SOCKET && name == SO_ACCEPTCONN) answer = is_listening(*at);
  if (level == SOL_SOCKET && name == SO_ERROR) answer = at->at == phase::refused ? ECONNREFUSED : 0;
  if (level == IPPROTO_TCP && name == TCP_ULP) *size = 0;
  *size = std::min(*size, static_cast<socklen_t>(sizeof answer));
  std::memcpy(value, &answer, *size);
  return 0;
}

int memory_network::name_of(int fd, bool peer, sockaddr* name, socklen_t* size) noexcept {
  socket_state* const at = find(fd);
  if (!at) return -EBADF;
  if (peer && at->at != phase::connected) return -ENOTCONN;
  return write_endpoint(peer ? at->peer : at->local, name, size);
}

// Closing a socket with unread bytes, or with SO_LINGER 0, resets the connection. So does giving up a connect: the
// server may accept this connection, and then its reads report the reset.
void memory_network::drop(socket_state& of) noexcept {
  if (of.at == phase::connecting) return post(of.other, {message::reset});
  if (of.at != phase::connected) return;
  end_writes_of_peer(of);
  if (of.close_resets || !of.inbox.empty()) {
    post(of.other, {message::reset});
  } else if (!of.end_sent) {
    post(of.other, {message::end});
  }
}

int memory_network::close(int fd) noexcept {
  auto node = sockets_.extract(fd);
  if (node.empty()) return -EBADF;
  drop(node.mapped());
  end_backlog(node.mapped());
  return 0;
}

}  // namespace ulexite::testing
