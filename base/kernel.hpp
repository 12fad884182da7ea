#pragma once

// The system calls on sockets. In a deterministic run they may go to a simulated network (testing/network.hpp).
// Elsewhere each call costs one additional predicted branch.
//
// All return the call's result, or -errno.

#include <ulexite/base/controller.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

namespace ulexite::detail {

class fd_source;

// Returns errno. Not inlined, so a compiler cannot keep the address of errno over a switch of threads.
int last_errno() noexcept;
// Sets errno. Not inlined for the same reason.
void set_last_errno(int error) noexcept;

// Returns the result of a system call, or -errno.
template <class Integer>
Integer result_or_errno(Integer returned) noexcept {
  return returned >= 0 ? returned : -last_errno();
}

// Sockets that the kernel does not know. Their descriptors are numbers that the kernel never assigns.
class simulated_network {
 public:
  static constexpr int first_fd = 1 << 28;

  virtual int socket(int family, int type) noexcept = 0;
  virtual int bind(int fd, const sockaddr* at, socklen_t size) noexcept = 0;
  virtual int listen(int fd, int backlog) noexcept = 0;
  virtual int accept(int fd, sockaddr* peer, socklen_t* size) noexcept = 0;
  virtual int connect(int fd, const sockaddr* to, socklen_t size) noexcept = 0;
  virtual ssize_t receive(int fd, msghdr& into, int flags) noexcept = 0;
  virtual ssize_t send(int fd, const msghdr& from) noexcept = 0;
  virtual int shutdown(int fd, int how) noexcept = 0;
  virtual int set_option(int fd, int level, int name, const void* value, socklen_t size) noexcept = 0;
  virtual int get_option(int fd, int level, int name, void* value, socklen_t* size) noexcept = 0;
  virtual int name_of(int fd, bool peer, sockaddr* name, socklen_t* size) noexcept = 0;
  virtual int close(int fd) noexcept = 0;
  // poll(2) of descriptors of this network, which never waits.
  virtual int poll(pollfd* queries, nfds_t count) noexcept = 0;
  // From now on edges of `fd` are reported to `source`, or no longer reported.
  virtual void watch(int fd, fd_source& source) = 0;
  virtual void unwatch(fd_source& source) noexcept = 0;

  // The earliest time at which something arrives, or INT64_MAX.
  virtual std::int64_t next_arrival() noexcept = 0;
  // Delivers everything that has arrived by `now`. Called on the main stack of the run.
  virtual void arrive(std::int64_t now) noexcept = 0;

 protected:
  ~simulated_network() = default;
};

// The network of the calling thread's run, or null.
inline simulated_network* network_of_run() noexcept {
  if (!controlled_somewhere.load(std::memory_order_relaxed)) [[likely]]  // hint
    return nullptr;
  controller* const own = this_controller();
  return own ? own->network : nullptr;
}
inline simulated_network* network_of(int fd) noexcept {
  return fd >= simulated_network::first_fd ? network_of_run() : nullptr;
}

// The calls, named as in libc.
namespace kernel {

inline int socket(int family, int type) noexcept {
  if (auto* const network = network_of_run()) [[unlikely]]
    return network->socket(family, type);
  return result_or_errno(::socket(family, type, 0));
}
inline int bind(int fd, const sockaddr* at, socklen_t size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->bind(fd, at, size);
  return result_or_errno(::bind(fd, at, size));
}
inline int listen(int fd, int backlog) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->listen(fd, backlog);
  return result_or_errno(::listen(fd, backlog));
}
// Non-blocking, and closed in programs that the process starts.
inline int accept(int fd, sockaddr* peer, socklen_t* size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->accept(fd, peer, size);
  return result_or_errno(::accept4(fd, peer, size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}
inline int connect(int fd, const sockaddr* to, socklen_t size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->connect(fd, to, size);
  return result_or_errno(::connect(fd, to, size));
}
inline ssize_t recvmsg(int fd, msghdr* into, int flags) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->receive(fd, *into, flags);
  return result_or_errno(::recvmsg(fd, into, flags));
}
inline ssize_t recv(int fd, void* data, std::size_t size, int flags) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]] {
    iovec buffer{data, size};
    msghdr into{};
    into.msg_iov = &buffer;
    into.msg_iovlen = 1;
    return network->receive(fd, into, flags);
  }
  return result_or_errno(::recv(fd, data, size, flags));
}
inline ssize_t sendmsg(int fd, const msghdr* from, int flags) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->send(fd, *from);
  return result_or_errno(::sendmsg(fd, from, flags));
}
inline ssize_t send(int fd, const void* data, std::size_t size, int flags) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]] {
    iovec buffer{const_cast<void*>(data), size};
    msghdr from{};
    from.msg_iov = &buffer;
    from.msg_iovlen = 1;
    return network->send(fd, from);
  }
  return result_or_errno(::send(fd, data, size, flags));
}
inline int shutdown(int fd, int how) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->shutdown(fd, how);
  return result_or_errno(::shutdown(fd, how));
}
inline int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->set_option(fd, level, name, value, size);
  return result_or_errno(::setsockopt(fd, level, name, value, size));
}
inline int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->get_option(fd, level, name, value, size);
  return result_or_errno(::getsockopt(fd, level, name, value, size));
}
inline int getsockname(int fd, sockaddr* name, socklen_t* size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->name_of(fd, false, name, size);
  return result_or_errno(::getsockname(fd, name, size));
}
inline int getpeername(int fd, sockaddr* name, socklen_t* size) noexcept {
  if (auto* const network = network_of(fd)) [[unlikely]]
    return network->name_of(fd, true, name, size);
  return result_or_errno(::getpeername(fd, name, size));
}
void close(int fd) noexcept;

}  // namespace kernel
}  // namespace ulexite::detail
