/* Channels and select. */
#include "machine.h"

#include <stdlib.h>

void channel_retain(shared_channel* channel) { atomic_fetch_add(&channel->references, 1); }

/* The last release frees what was never received. */
void channel_release(shared_channel* channel) {
  if (atomic_fetch_sub(&channel->references, 1) != 1) return;
  message* left;
  ulx_close(channel->of);
  ulx_shield(true);
  while (ulx_receive(channel->of, &left, 0) == 0) message_free(left);
  ulx_shield(false);
  ulx_channel_destroy(channel->of);
  free(channel);
}

void channel_push(lua_State* lua, shared_channel* channel) {
  shared_channel** const object = lua_newuserdatauv(lua, sizeof *object, 0);
  *object = channel;
  channel_retain(channel);
  luaL_setmetatable(lua, "channel");
}

shared_channel* channel_at(lua_State* lua, int index) {
  return *(shared_channel**)luaL_checkudata(lua, index, "channel");
}

static int channel_gc(lua_State* lua) {
  channel_release(channel_at(lua, 1));
  return 0;
}

/* channel([capacity]) */
static int channel_new(lua_State* lua) {
  const lua_Integer capacity = luaL_optinteger(lua, 1, 0);
  luaL_argcheck(lua, capacity >= 0, 1, "a capacity below 0");
  shared_channel* const made = malloc(sizeof *made);
  if (made) *made = (shared_channel){0, ulx_channel_new(sizeof(message*), (size_t)capacity)};
  if (!made || !made->of) {
    free(made);
    return luaL_error(lua, "no memory for a channel");
  }
  channel_push(lua, made);
  return 1;
}

/* c:send(value): waits for room. Raises an error if the channel is closed. */
static int channel_send(lua_State* lua) {
  shared_channel* const channel = channel_at(lua, 1);
  lua_settop(lua, 2);
  message* const sent = message_of(lua, 2);
  const int error = ulx_send(channel->of, &sent, ULX_FOREVER);
  if (error) message_free(sent);
  check(lua, error);
  return 0;
}

/* c:receive() -> value, true, or nil, false at the end */
static int channel_receive(lua_State* lua) {
  message* received;
  const int error = ulx_receive(channel_at(lua, 1)->of, &received, ULX_FOREVER);
  if (error == ULX_ECLOSED) {
    lua_pushnil(lua);
    lua_pushboolean(lua, 0);
    return 2;
  }
  check(lua, error);
  message_push(lua, received);
  lua_pushboolean(lua, 1);
  return 2;
}

static int channel_close(lua_State* lua) {
  lua_pushboolean(lua, ulx_close(channel_at(lua, 1)->of));
  return 1;
}

static int channel_length(lua_State* lua) {
  lua_pushinteger(lua, (lua_Integer)ulx_channel_length(channel_at(lua, 1)->of));
  return 1;
}

/* for value in c:values() do */
static int channel_next(lua_State* lua) {
  lua_settop(lua, 1);
  return channel_receive(lua) == 2 && lua_toboolean(lua, -1) ? (lua_pop(lua, 1), 1) : (lua_pushnil(lua), 1);
}
static int channel_values(lua_State* lua) {
  lua_pushcfunction(lua, channel_next);
  lua_pushvalue(lua, 1);
  return 2;
}

enum { most_cases = 64 };

static int64_t deadline_after(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index)) return ULX_FOREVER;
  const lua_Number seconds = luaL_checknumber(lua, index);
  return seconds <= 0 ? 0 : seconds >= 1e9 ? ULX_FOREVER : ulx_now() + (int64_t)(seconds * 1e9);
}

/* Lua closes the messages of a select when the function returns or raises an error. So none leaks. */
static int messages_close(lua_State* lua) {
  message** const all = lua_touserdata(lua, 1);
  const size_t count = lua_rawlen(lua, 1) / sizeof *all;
  for (size_t i = 0; i < count; ++i) message_free(all[i]);
  return 0;
}

static message** messages_push(lua_State* lua, int count) {
  message** const all = lua_newuserdatauv(lua, (size_t)count * sizeof *all, 0);
  for (int i = 0; i < count; ++i) all[i] = NULL;
  if (luaL_newmetatable(lua, "messages of a select")) {
    lua_pushcfunction(lua, messages_close);
    lua_setfield(lua, -2, "__close");
  }
  lua_setmetatable(lua, -2);
  lua_toclose(lua, -1);
  return all;
}

/* Fills a case from entry `i` of the table. Its channel stays on the stack, because the wait must not lose it to the
 * collector. */
static void fill_case(lua_State* lua, int i, ulx_case* filled, message** element) {
  const bool sends = lua_geti(lua, 1, i) == LUA_TTABLE;
  const int at = lua_gettop(lua);
  if (sends) {
    lua_geti(lua, at, 1);
    lua_geti(lua, at, 2);
    *element = message_of(lua, at + 2);
    lua_pop(lua, 1);
    lua_replace(lua, at);
  }
  *filled = (ulx_case){
      .what = sends ? ULX_CASE_SEND : ULX_CASE_RECEIVE, .channel = channel_at(lua, at)->of, .element = element};
}

/* select(cases [, seconds]): each case is a channel to receive from, or {channel, value} to send. Returns the number of
 * the case that was done, what was received, and false if its channel was closed; nothing after the time. With a number
 * or "#" it is Lua's own select. */
static int channel_select(lua_State* lua) {
  if (lua_isstring(lua, 1)) return lua_tocfunction(lua, lua_upvalueindex(1))(lua); /* which numbers are, too */
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int64_t deadline = deadline_after(lua, 2);
  const lua_Integer length = luaL_len(lua, 1);
  luaL_argcheck(lua, length >= 0 && length <= most_cases, 1, "more than 64 cases");
  const int count = (int)length;
  luaL_checkstack(lua, count + 10, "select");
  lua_settop(lua, 2);
  message** const messages = messages_push(lua, count);
  ulx_case cases[most_cases] = {{0}};
  for (int i = 0; i < count; ++i) fill_case(lua, i + 1, &cases[i], &messages[i]);
  size_t chosen = 0;
  const int error = ulx_select(cases, (size_t)count, deadline, &chosen);
  message* const done = error || cases[chosen].error ? NULL : messages[chosen];
  if (done) messages[chosen] = NULL;
  if (error == ULX_ETIMEDOUT || error == ULX_EWOULDBLOCK) return 0;
  check(lua, error);
  lua_pushinteger(lua, (lua_Integer)chosen + 1);
  if (cases[chosen].what == ULX_CASE_SEND || !done) {
    lua_pushnil(lua);
  } else {
    message_push(lua, done);
  }
  lua_pushboolean(lua, !cases[chosen].error);
  return 3;
}

void open_channels(lua_State* lua) {
  static const luaL_Reg methods[] = {{"send", channel_send},
                                     {"receive", channel_receive},
                                     {"close", channel_close},
                                     {"values", channel_values},
                                     {"__len", channel_length},
                                     {"__gc", channel_gc},
                                     {NULL, NULL}};
  luaL_newmetatable(lua, "channel");
  luaL_setfuncs(lua, methods, 0);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
  lua_register(lua, "channel", channel_new);
  lua_getglobal(lua, "select");
  lua_pushcclosure(lua, channel_select, 1);
  lua_setglobal(lua, "select");
}
