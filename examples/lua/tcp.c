/* Sockets for Lua. */
#include "machine.h"

#include "../embedding/socket.h"

static void check_tcp(lua_State* lua, const char* what, int error) {
  if (error) luaL_error(lua, "%s: %s", what, tcp_error(error));
}

static tcp_socket* socket_push(lua_State* lua) {
  tcp_socket* const made = lua_newuserdatauv(lua, sizeof *made, 0);
  made->fd = -1;
  luaL_setmetatable(lua, "socket");
  return made;
}

static tcp_socket* socket_at(lua_State* lua, int index) {
  tcp_socket* const found = luaL_checkudata(lua, index, "socket");
  luaL_argcheck(lua, found->fd >= 0, index, "the socket is closed");
  return found;
}

static int port_at(lua_State* lua, int index) {
  const lua_Integer port = luaL_checkinteger(lua, index);
  luaL_argcheck(lua, port >= 0 && port <= 65535, index, "a port from 0 to 65535");
  return (int)port;
}

/* tcp.listen(port [, host]) -> socket, port */
static int lua_listen(lua_State* lua) {
  const int port = port_at(lua, 1);
  const char* const host = luaL_optstring(lua, 2, "127.0.0.1");
  tcp_socket* const made = socket_push(lua);
  check_tcp(lua, "listen", tcp_listen(host, port, made));
  lua_pushinteger(lua, tcp_port(made));
  return 2;
}

/* tcp.connect(host, port) -> socket */
static int lua_connect(lua_State* lua) {
  const char* const host = luaL_checkstring(lua, 1);
  const int port = port_at(lua, 2);
  const int error = tcp_connect(host, port, socket_push(lua));
  if (error) check_tcp(lua, lua_pushfstring(lua, "connect: %s", host), error);
  return 1;
}

/* s:accept() -> socket */
static int socket_accept(lua_State* lua) {
  tcp_socket* const listener = socket_at(lua, 1);
  check_tcp(lua, "accept", tcp_accept(listener, socket_push(lua)));
  return 1;
}

static int give(lua_State* lua, tcp_socket* from, size_t length, size_t taken) {
  if (taken == 0) return 0;
  lua_pushlstring(lua, from->buffer, length);
  tcp_take(from, taken);
  return 1;
}

/* s:read() -> some bytes, or nil at the end */
static int socket_read(lua_State* lua) {
  tcp_socket* const from = socket_at(lua, 1);
  size_t length = 0;
  check_tcp(lua, "read", tcp_read(from, &length));
  return give(lua, from, length, length);
}

/* s:line() -> a line without its end, or nil at the end */
static int socket_line(lua_State* lua) {
  tcp_socket* const from = socket_at(lua, 1);
  size_t length = 0, taken = 0;
  check_tcp(lua, "line", tcp_read_line(from, &length, &taken));
  return give(lua, from, length, taken);
}

/* s:write(text): all of it */
static int socket_write(lua_State* lua) {
  tcp_socket* const to = socket_at(lua, 1);
  size_t length;
  const char* const bytes = luaL_checklstring(lua, 2, &length);
  check_tcp(lua, "write", tcp_write(to, bytes, length));
  return 0;
}

/* s:close(): the waits of other fibers for it raise an error. */
static int socket_close(lua_State* lua) {
  tcp_close(luaL_checkudata(lua, 1, "socket"));
  return 0;
}

void open_tcp(lua_State* lua) {
  static const luaL_Reg methods[] = {
      {"accept", socket_accept}, {"read", socket_read},  {"line", socket_line},     {"write", socket_write},
      {"close", socket_close},   {"__gc", socket_close}, {"__close", socket_close}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"listen", lua_listen}, {"connect", lua_connect}, {NULL, NULL}};
  luaL_newmetatable(lua, "socket");
  luaL_setfuncs(lua, methods, 0);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
  luaL_newlib(lua, functions);
  lua_setglobal(lua, "tcp");
}
