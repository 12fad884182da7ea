/* Sockets of IPv4 and IPv6 that wait as fibers do. */
#include "machine.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
  int fd;           /* -1: closed */
  size_t kept;      /* bytes that were read beyond a line */
  char buffer[8192];
} socket_object;

static socket_object* socket_push(lua_State* lua, int fd) {
  socket_object* const made = lua_newuserdatauv(lua, sizeof *made, 0);
  made->fd = fd;
  made->kept = 0;
  luaL_setmetatable(lua, "socket");
  return made;
}

static socket_object* socket_at(lua_State* lua, int index) {
  socket_object* const found = luaL_checkudata(lua, index, "socket");
  luaL_argcheck(lua, found->fd >= 0, index, "the socket is closed");
  return found;
}

static void wait_for(lua_State* lua, socket_object* at, unsigned what) {
  check(lua, ulx_wait_fd(at->fd, what, ULX_FOREVER, NULL));
  luaL_argcheck(lua, at->fd >= 0, 1, "the socket was closed meanwhile"); /* by another fiber of this machine */
}

static int failed(lua_State* lua, const char* what) { return luaL_error(lua, "%s: %s", what, ulx_strerror(errno)); }

/* getaddrinfo blocks, so a thread that may block calls it. */
typedef struct {
  const char *host, *port;
  int flags;
  struct addrinfo* found;
} lookup;

static intptr_t look_up(void* argument) {
  lookup* const l = argument;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = l->flags};
  return getaddrinfo(l->host, l->port, &hints, &l->found);
}

/* A socket for the first address of which `use` returns 0, or -1 with the last error in errno. */
static int first_usable(lua_State* lua, lookup l, int (*use)(int fd, const struct addrinfo* address)) {
  intptr_t error = 0;
  check(lua, ulx_blocking(look_up, &l, &error));
  if (error) return luaL_error(lua, "%s: %s", l.host, gai_strerror((int)error));
  int fd = -1;
  for (const struct addrinfo* a = l.found; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && use(fd, a) != 0) {
      const int kept = errno;
      close(fd);
      errno = kept;
      fd = -1;
    }
  }
  const int kept = errno;
  freeaddrinfo(l.found);
  errno = kept;
  return fd;
}

static int listen_at(int fd, const struct addrinfo* address) {
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, SOMAXCONN);
}

static int connect_to(int fd, const struct addrinfo* address) {
  if (connect(fd, address->ai_addr, address->ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return -1;
  const int waited = ulx_wait_fd(fd, ULX_WRITE, ULX_FOREVER, NULL);
  int error = waited;
  socklen_t size = sizeof error;
  if (!waited) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error ? -1 : 0;
}

static const char* port_at(lua_State* lua, int index) {
  const lua_Integer port = luaL_checkinteger(lua, index);
  luaL_argcheck(lua, port >= 0 && port <= 65535, index, "a port from 0 to 65535");
  return lua_pushfstring(lua, "%I", port);
}

/* tcp.listen(port [, host]) -> socket, port */
static int tcp_listen(lua_State* lua) {
  const char* const host = luaL_optstring(lua, 2, "127.0.0.1");
  const int fd = first_usable(lua, (lookup){host, port_at(lua, 1), AI_PASSIVE, NULL}, listen_at);
  if (fd < 0) return failed(lua, "listen");
  socket_push(lua, fd);
  struct sockaddr_storage bound;
  socklen_t size = sizeof bound;
  getsockname(fd, (struct sockaddr*)&bound, &size);
  lua_pushinteger(lua, ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6*)&bound)->sin6_port
                                                         : ((struct sockaddr_in*)&bound)->sin_port));
  return 2;
}

/* tcp.connect(host, port) -> socket */
static int tcp_connect(lua_State* lua) {
  const int fd = first_usable(lua, (lookup){luaL_checkstring(lua, 1), port_at(lua, 2), 0, NULL}, connect_to);
  if (fd < 0) return failed(lua, "connect");
  socket_push(lua, fd);
  return 1;
}

/* s:accept() -> socket */
static int socket_accept(lua_State* lua) {
  socket_object* const at = socket_at(lua, 1);
  for (;;) {
    const int fd = accept4(at->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      socket_push(lua, fd);
      return 1;
    }
    if (errno == EMFILE || errno == ENFILE) {
      check(lua, ulx_sleep(10000000)); /* until another is closed */
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      return failed(lua, "accept");
    }
    wait_for(lua, at, ULX_READ);
  }
}

/* More bytes behind those that are kept; false at the end. */
static bool read_more(lua_State* lua, socket_object* at) {
  for (;;) {
    const ssize_t got = recv(at->fd, at->buffer + at->kept, sizeof at->buffer - at->kept, 0);
    if (got > 0) at->kept += (size_t)got;
    if (got >= 0) return got > 0;
    if (errno != EAGAIN && errno != EINTR) failed(lua, "read");
    wait_for(lua, at, ULX_READ);
  }
}

static int give(lua_State* lua, socket_object* at, size_t length, size_t taken) {
  lua_pushlstring(lua, at->buffer, length);
  at->kept -= taken;
  memmove(at->buffer, at->buffer + taken, at->kept);
  return 1;
}

/* s:read() -> some bytes, or nil at the end */
static int socket_read(lua_State* lua) {
  socket_object* const at = socket_at(lua, 1);
  if (at->kept == 0 && !read_more(lua, at)) return 0;
  return give(lua, at, at->kept, at->kept);
}

/* s:line() -> a line without its end, or nil at the end */
static int socket_line(lua_State* lua) {
  socket_object* const at = socket_at(lua, 1);
  for (;;) {
    const char* const end = memchr(at->buffer, '\n', at->kept);
    if (end) {
      const size_t taken = (size_t)(end - at->buffer) + 1;
      return give(lua, at, taken - 1 - (taken > 1 && end[-1] == '\r'), taken);
    }
    if (at->kept == sizeof at->buffer) return luaL_error(lua, "a line of more than %d bytes", (int)sizeof at->buffer);
    if (!read_more(lua, at)) return at->kept ? give(lua, at, at->kept, at->kept) : 0;
  }
}

/* s:write(text): all of it */
static int socket_write(lua_State* lua) {
  socket_object* const at = socket_at(lua, 1);
  size_t left;
  for (const char* from = luaL_checklstring(lua, 2, &left); left > 0;) {
    const ssize_t sent = send(at->fd, from, left, MSG_NOSIGNAL);
    if (sent >= 0) {
      from += sent;
      left -= (size_t)sent;
    } else if (errno == EAGAIN) {
      wait_for(lua, at, ULX_WRITE);
    } else if (errno != EINTR) {
      return failed(lua, "write");
    }
  }
  return 0;
}

/* s:close(): who waits for it in another fiber is told by an error. */
static int socket_close(lua_State* lua) {
  socket_object* const at = luaL_checkudata(lua, 1, "socket");
  if (at->fd < 0) return 0;
  shutdown(at->fd, SHUT_RDWR);
  close(at->fd);
  at->fd = -1;
  return 0;
}

void open_tcp(lua_State* lua) {
  static const luaL_Reg methods[] = {{"accept", socket_accept}, {"read", socket_read},   {"line", socket_line},
                                     {"write", socket_write},   {"close", socket_close}, {"__gc", socket_close},
                                     {"__close", socket_close}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"listen", tcp_listen}, {"connect", tcp_connect}, {NULL, NULL}};
  luaL_newmetatable(lua, "socket");
  luaL_setfuncs(lua, methods, 0);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
  luaL_newlib(lua, functions);
  lua_setglobal(lua, "tcp");
}
