#include "socket.h"

#include <ulexite/interop/ulexite.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char* tcp_error(int error) {
  return error < 0 ? gai_strerror(error) : error == EBADF ? "the socket is closed" : ulx_strerror(error);
}

static void opened(tcp_socket* made, int fd) {
  made->fd = fd;
  made->left = -1;
  atomic_init(&made->waits, 0);
  made->kept = 0;
}

/* Another fiber may close the socket before or during the wait. ulx_wait_fd forbids that its descriptor is closed,
 * because a new socket with the same number would then not be woken. */
static int wait_for(tcp_socket* at, unsigned what) {
  if (at->fd < 0) return EBADF;
  atomic_fetch_add(&at->waits, 1);
  const int error = ulx_wait_fd(at->fd, what, ULX_FOREVER, NULL);
  const bool last = atomic_fetch_sub(&at->waits, 1) == 1;
  if (at->fd >= 0) return error;
  if (last) close(at->left);
  return error ? error : EBADF;
}

/* getaddrinfo blocks, so a thread that may block calls it. */
typedef struct {
  const char* host;
  char port[8];
  int flags;
  struct addrinfo* found;
} lookup;

static intptr_t look_up(void* argument) {
  lookup* const l = argument;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = l->flags};
  return getaddrinfo(l->host, l->port, &hints, &l->found);
}

/* A socket for the first address for which `use` returns 0; else the error of the last. */
static int first_usable(const char* host, int port, int flags, int (*use)(int fd, const struct addrinfo* address),
                        tcp_socket* made) {
  if (port < 0 || port > 65535) return EINVAL;
  lookup l = {.host = host, .flags = flags};
  snprintf(l.port, sizeof l.port, "%d", port);
  intptr_t unknown = 0;
  int error = ulx_blocking(look_up, &l, &unknown);
  if (error || unknown) return error ? error : (int)unknown;
  opened(made, -1);
  for (const struct addrinfo* a = l.found; a && made->fd < 0; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : use(fd, a);
    if (!error) {
      made->fd = fd;
    } else if (fd >= 0) {
      close(fd);
    }
  }
  freeaddrinfo(l.found);
  return error;
}

static int listen_at(int fd, const struct addrinfo* address) {
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, SOMAXCONN) ? errno : 0;
}

static int connect_to(int fd, const struct addrinfo* address) {
  if (connect(fd, address->ai_addr, address->ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  int error = ulx_wait_fd(fd, ULX_WRITE, ULX_FOREVER, NULL);
  socklen_t size = sizeof error;
  if (!error) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

int tcp_listen(const char* host, int port, tcp_socket* made) {
  return first_usable(host, port, AI_PASSIVE, listen_at, made);
}

int tcp_connect(const char* host, int port, tcp_socket* made) { return first_usable(host, port, 0, connect_to, made); }

int tcp_port(const tcp_socket* listener) {
  struct sockaddr_storage bound;
  socklen_t size = sizeof bound;
  if (getsockname(listener->fd, (struct sockaddr*)&bound, &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6*)&bound)->sin6_port
                                           : ((struct sockaddr_in*)&bound)->sin_port);
}

/* Errors of one connection, see accept(2). */
static int ends_one_connection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN || error == ENOPROTOOPT ||
         error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH || error == EOPNOTSUPP || error == ENETUNREACH;
}

int tcp_accept(tcp_socket* listener, tcp_socket* made) {
  for (;;) {
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      opened(made, fd);
      return 0;
    }
    int error = 0;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      error = ulx_sleep(10000000); /* until another is closed, or memory is free */
    } else if (errno != EAGAIN && errno != EINTR && !ends_one_connection(errno)) {
      return errno;
    } else {
      error = wait_for(listener, ULX_READ);
    }
    if (error) return error;
  }
}

/* Reads more bytes behind the kept ones; *got is 0 at the end. */
static int read_more(tcp_socket* from, ssize_t* got) {
  for (;;) {
    *got = recv(from->fd, from->buffer + from->kept, sizeof from->buffer - from->kept, 0);
    if (*got >= 0) {
      from->kept += (size_t)*got;
      return 0;
    }
    if (errno != EAGAIN && errno != EINTR) return errno;
    const int error = wait_for(from, ULX_READ);
    if (error) return error;
  }
}

int tcp_read(tcp_socket* from, size_t* length) {
  ssize_t got = 0;
  const int error = from->kept == 0 ? read_more(from, &got) : 0;
  *length = from->kept;
  return error;
}

int tcp_read_line(tcp_socket* from, size_t* length, size_t* taken) {
  for (;;) {
    const char* const end = memchr(from->buffer, '\n', from->kept);
    if (end) {
      *taken = (size_t)(end - from->buffer) + 1;
      *length = *taken - 1 - (*taken > 1 && end[-1] == '\r');
      return 0;
    }
    if (from->kept == sizeof from->buffer) return EMSGSIZE;
    ssize_t got = 0;
    const int error = read_more(from, &got);
    if (error) return error;
    if (got > 0) continue;
    *taken = *length = from->kept; /* a last line without an end, or nothing */
    return 0;
  }
}

void tcp_take(tcp_socket* from, size_t taken) {
  from->kept -= taken;
  memmove(from->buffer, from->buffer + taken, from->kept);
}

int tcp_write(tcp_socket* to, const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t sent = send(to->fd, bytes, length, MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes += sent;
      length -= (size_t)sent;
      continue;
    }
    const int error = errno == EAGAIN ? wait_for(to, ULX_WRITE) : errno == EINTR ? 0 : errno;
    if (error) return error;
  }
  return 0;
}

void tcp_shut(const tcp_socket* ended) { shutdown(ended->fd, SHUT_RDWR); }

void tcp_close(tcp_socket* closed) {
  if (closed->fd < 0) return;
  tcp_shut(closed); /* which wakes the waits */
  closed->left = closed->fd;
  closed->fd = -1;
  if (atomic_load(&closed->waits) == 0) close(closed->left);
}
