/* TCP sockets of IPv4 and IPv6 that wait as fibers do, by the C interface. The Lua and the Scheme example share them.
 *
 * Each function returns 0 or an error for tcp_error. One fiber reads from a socket at a time, and one writes to it. */
#ifndef EMBEDDING_SOCKET_H
#define EMBEDDING_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int fd;           /* -1: closed */
  int left;         /* the descriptor of a socket that was closed during waits; the last of them closes it */
  atomic_int waits; /* under way; a reader and a writer may change it in parallel */
  size_t kept;      /* bytes that were read beyond a line */
  char buffer[8192];
} tcp_socket;

/* In words: errors of the C interface, of errno, and of getaddrinfo. */
const char* tcp_error(int error);

/* `port` 0: any that is free. */
int tcp_listen(const char* host, int port, tcp_socket* made);
/* That a listening socket got; 0 if there is none. */
int tcp_port(const tcp_socket* listener);
int tcp_connect(const char* host, int port, tcp_socket* made);
/* Waits for a connection, and for a free descriptor or memory. */
int tcp_accept(tcp_socket* listener, tcp_socket* made);

/* What stands at the beginning of the buffer: all that is there, or after a wait at least a byte. *length is 0 at the
 * end. tcp_take gives it back. */
int tcp_read(tcp_socket* from, size_t* length);
/* The same for a line without its end. *taken is what to give to tcp_take; 0 at the end. EMSGSIZE: longer than the
 * buffer. */
int tcp_read_line(tcp_socket* from, size_t* length, size_t* taken);
void tcp_take(tcp_socket* from, size_t taken);
/* All of it. */
int tcp_write(tcp_socket* to, const char* bytes, size_t length);
/* Wakes the fibers that wait for it: reads come to their end, and writes fail. */
void tcp_shut(const tcp_socket* ended);
/* Gives back the descriptor, not while another thread uses it. Fibers of the caller's strand that wait for it get
 * EBADF, and the memory must stay until they have it. Any number of times. */
void tcp_close(tcp_socket* closed);

#endif
