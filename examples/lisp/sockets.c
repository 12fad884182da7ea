/* TCP for Scheme. One fiber may read while another writes; a close by any ends both. */
#include "lisp.h"

#include "../embedding/socket.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct {
  type is;
  atomic_bool closed;
  atomic_bool reading, writing;
  atomic_int uses; /* its descriptor is given back when the last ends: 1 for being open, and 1 for each call */
  tcp_socket of;
} socket_object;

/* `about` may be null. */
static void check(fiber* by, const primitive* self, int error, value about) {
  if (!error) return;
  char words[160];
  snprintf(words, sizeof words, "%s: %s", self->name, tcp_error(error));
  fail(by, words, about);
}

static void release(socket_object* s) {
  if (atomic_fetch_sub(&s->uses, 1) == 1) tcp_close(&s->of);
}

static bool close_once(socket_object* s) {
  if (atomic_exchange(&s->closed, true)) return false;
  tcp_shut(&s->of);
  release(s);
  return true;
}

static void finalize_socket(void* object, void* unused) {
  (void)unused;
  close_once(object);
}

static socket_object* socket_new(void) {
  give_back_garbage();
  socket_object* const made = allocate_plain(t_socket, sizeof *made); /* 8 KiB that hold no pointers */
  made->of.fd = -1;
  made->of.kept = 0;
  atomic_init(&made->closed, true);
  atomic_init(&made->reading, false);
  atomic_init(&made->writing, false);
  atomic_init(&made->uses, 0);
  return made;
}

static value opened(socket_object* made) {
  atomic_store(&made->uses, 1);
  atomic_store(&made->closed, false);
  GC_register_finalizer_no_order(made, finalize_socket, NULL, NULL, NULL);
  return (value)made;
}

/* One call of a kind at a time, on a socket that is open. */
static socket_object* begin_use(fiber* by, const primitive* self, value v, size_t kind) {
  check_type(by, self, v, t_socket);
  socket_object* const s = (socket_object*)v;
  atomic_bool* const busy = (atomic_bool*)((char*)s + kind);
  if (atomic_exchange(busy, true)) fail(by, "another fiber does that on this socket", v);
  int uses = atomic_load(&s->uses);
  while (uses > 0 && !atomic_compare_exchange_weak(&s->uses, &uses, uses + 1)) {
  }
  if (uses > 0 && !atomic_load(&s->closed)) return s;
  if (uses > 0) release(s);
  atomic_store(busy, false);
  fail(by, "the socket is closed", v);
}

static void end_use(socket_object* s, size_t kind) {
  atomic_store((atomic_bool*)((char*)s + kind), false);
  release(s);
}
#define READING offsetof(socket_object, reading)
#define WRITING offsetof(socket_object, writing)

/* (tcp-listen port [host]) */
PRIMITIVE(listen_tcp) {
  const char* host = "127.0.0.1";
  if (count == 2) {
    check_type(by, self, arguments[1], t_string);
    host = ((string*)arguments[1])->bytes;
  }
  socket_object* const made = socket_new();
  check(by, self, tcp_listen(host, (int)index_argument(by, self, arguments[0], 65535), &made->of), arguments[0]);
  return opened(made);
}

/* (tcp-connect host port) */
PRIMITIVE(connect_tcp) {
  check_type(by, self, arguments[0], t_string);
  socket_object* const made = socket_new();
  check(by, self,
        tcp_connect(((string*)arguments[0])->bytes, (int)index_argument(by, self, arguments[1], 65535), &made->of),
        arguments[0]);
  return opened(made);
}

PRIMITIVE(port) {
  check_type(by, self, arguments[0], t_socket);
  return from_integer(tcp_port(&((socket_object*)arguments[0])->of));
}

PRIMITIVE(accept_tcp) {
  socket_object* const listener = begin_use(by, self, arguments[0], READING);
  socket_object* const made = socket_new();
  const int error = tcp_accept(&listener->of, &made->of);
  end_use(listener, READING);
  check(by, self, error, NULL);
  return opened(made);
}

/* A line without its end, or the end-of-file object. */
PRIMITIVE(read_line) {
  socket_object* const s = begin_use(by, self, arguments[0], READING);
  size_t length = 0, taken = 0;
  const int error = tcp_read_line(&s->of, &length, &taken);
  const value line = error || taken == 0 ? &end_of_file : string_of(s->of.buffer, length);
  if (!error) tcp_take(&s->of, taken);
  end_use(s, READING);
  check(by, self, error, NULL);
  return line;
}

/* The bytes that are there, at most `count` if it is given; or the end-of-file object. */
PRIMITIVE(read_some) {
  const size_t most = count == 2 ? (size_t)index_argument(by, self, arguments[1], INT32_MAX) : SIZE_MAX;
  socket_object* const s = begin_use(by, self, arguments[0], READING);
  size_t length = 0;
  const int error = tcp_read(&s->of, &length);
  if (length > most) length = most;
  const value bytes = error || length == 0 ? &end_of_file : string_of(s->of.buffer, length);
  if (!error) tcp_take(&s->of, length);
  end_use(s, READING);
  check(by, self, error, NULL);
  return bytes;
}

/* (tcp-write socket string ...): all of it. */
PRIMITIVE(write_all) {
  text all = {0};
  for (int i = 1; i < count; ++i) {
    check_type(by, self, arguments[i], t_string);
    append(&all, ((string*)arguments[i])->bytes, ((string*)arguments[i])->length);
  }
  socket_object* const s = begin_use(by, self, arguments[0], WRITING);
  const int error = tcp_write(&s->of, all.bytes, all.length);
  end_use(s, WRITING);
  check(by, self, error, NULL);
  return &unspecified;
}

PRIMITIVE(close_tcp) {
  check_type(by, self, arguments[0], t_socket);
  return from_bool(close_once((socket_object*)arguments[0]));
}

void define_sockets(void) {
  static const definition all[] = {{"tcp-listen", 1, 2, listen_tcp},   {"tcp-connect", 2, 2, connect_tcp},
                                   {"tcp-port", 1, 1, port},           {"tcp-accept", 1, 1, accept_tcp},
                                   {"tcp-read-line", 1, 1, read_line}, {"tcp-read", 1, 2, read_some},
                                   {"tcp-write", 1, -1, write_all},    {"tcp-close", 1, 1, close_tcp}};
  DEFINE(all);
}
