/* Values as bytes: what lies between two machines. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

enum { tag_nil, tag_false, tag_true, tag_integer, tag_float, tag_string, tag_table, tag_end, tag_channel, tag_function, tag_globals };
enum { deepest = 100 };

/* While a message is written it belongs to a Lua object, so an error in the midst of it leaks nothing. */
typedef struct {
  message* into;
  size_t room;
} writer;

static int writer_gc(lua_State* lua) {
  writer* const w = lua_touserdata(lua, 1);
  free(w->into);
  w->into = NULL;
  return 0;
}

static void put(lua_State* lua, writer* w, const void* bytes, size_t size) {
  if (w->into->size + size > w->room) {
    const size_t room = 2 * (w->into->size + size);
    message* const larger = realloc(w->into, sizeof *larger + room);
    if (!larger) luaL_error(lua, "no memory for a message of %d bytes", (int)room);
    w->into = larger;
    w->room = room;
  }
  memcpy(w->into->bytes + w->into->size, bytes, size);
  w->into->size += size;
}

static void put_tag(lua_State* lua, writer* w, char tag) { put(lua, w, &tag, 1); }
static void put_sized(lua_State* lua, writer* w, const char* bytes, size_t size) {
  put(lua, w, &size, sizeof size);
  put(lua, w, bytes, size);
}
static int put_code(lua_State* lua, const void* bytes, size_t size, void* w) {
  put(lua, w, bytes, size);
  return 0;
}

static void put_value(lua_State* lua, writer* w, int index, int depth);

/* A function goes with copies of its upvalues, but for the globals, which are those of where it arrives. */
static void put_function(lua_State* lua, writer* w, int index, int depth) {
  if (lua_iscfunction(lua, index)) luaL_error(lua, "a function of C cannot go to another machine");
  put_tag(lua, w, tag_function);
  size_t code = 0;
  const size_t place = w->into->size;
  put(lua, w, &code, sizeof code); /* told below */
  lua_pushvalue(lua, index);
  lua_dump(lua, put_code, w, 0);
  lua_pop(lua, 1);
  code = w->into->size - place - sizeof code;
  memcpy(w->into->bytes + place, &code, sizeof code);
  for (int i = 1;; ++i) {
    const char* const name = lua_getupvalue(lua, index, i);
    if (!name) break;
    if (!strcmp(name, "_ENV")) {
      put_tag(lua, w, tag_globals);
    } else {
      put_value(lua, w, lua_gettop(lua), depth);
    }
    lua_pop(lua, 1);
  }
  put_tag(lua, w, tag_end);
}

static void put_value(lua_State* lua, writer* w, int index, int depth) {
  if (depth > deepest) luaL_error(lua, "a table of more than %d levels, or one that contains itself", deepest);
  luaL_checkstack(lua, 10, "message");
  switch (lua_type(lua, index)) {
    case LUA_TNIL: put_tag(lua, w, tag_nil); return;
    case LUA_TBOOLEAN: put_tag(lua, w, lua_toboolean(lua, index) ? tag_true : tag_false); return;
    case LUA_TNUMBER:
      if (lua_isinteger(lua, index)) {
        const lua_Integer n = lua_tointeger(lua, index);
        put_tag(lua, w, tag_integer);
        put(lua, w, &n, sizeof n);
      } else {
        const lua_Number n = lua_tonumber(lua, index);
        put_tag(lua, w, tag_float);
        put(lua, w, &n, sizeof n);
      }
      return;
    case LUA_TSTRING: {
      size_t size;
      const char* const text = lua_tolstring(lua, index, &size);
      put_tag(lua, w, tag_string);
      put_sized(lua, w, text, size);
      return;
    }
    case LUA_TTABLE:
      put_tag(lua, w, tag_table);
      for (lua_pushnil(lua); lua_next(lua, index); lua_pop(lua, 1)) {
        const int value = lua_gettop(lua);
        put_value(lua, w, value - 1, depth + 1);
        put_value(lua, w, value, depth + 1);
      }
      put_tag(lua, w, tag_end);
      return;
    case LUA_TFUNCTION: put_function(lua, w, index, depth + 1); return;
    case LUA_TUSERDATA:
      if (luaL_testudata(lua, index, "channel")) {
        shared_channel* const channel = channel_at(lua, index);
        put_tag(lua, w, tag_channel);
        put(lua, w, &channel, sizeof channel);
        return;
      } /* fallthrough */
    default: luaL_error(lua, "a %s cannot go to another machine", luaL_typename(lua, index));
  }
}

/* ---- reading ---- */

typedef struct {
  const char *at, *end;
} reader;

static void get(reader* r, void* into, size_t size) {
  memcpy(into, r->at, size);
  r->at += size;
}
static const char* get_sized(reader* r, size_t* size) {
  get(r, size, sizeof *size);
  r->at += *size;
  return r->at - *size;
}

/* Visits the channels of a value. A message holds a reference to each. */
static bool each_channel(reader* r, void (*visit)(shared_channel*)) {
  size_t size;
  shared_channel* channel;
  switch (*r->at++) {
    case tag_end: return false;
    case tag_integer: r->at += sizeof(lua_Integer); return true;
    case tag_float: r->at += sizeof(lua_Number); return true;
    case tag_string: get_sized(r, &size); return true;
    case tag_channel:
      get(r, &channel, sizeof channel);
      visit(channel);
      return true;
    case tag_table:
      while (each_channel(r, visit)) each_channel(r, visit);
      return true;
    case tag_function:
      get_sized(r, &size);
      while (each_channel(r, visit)) {
      }
      return true;
    default: return true;
  }
}

static void each_channel_of(message* of, void (*visit)(shared_channel*)) {
  for (reader r = {of->bytes, of->bytes + of->size}; r.at < r.end;) each_channel(&r, visit);
}

message* message_of(lua_State* lua, int first) {
  const int last = lua_gettop(lua);
  writer* const w = lua_newuserdatauv(lua, sizeof *w, 0);
  *w = (writer){NULL, 0};
  if (luaL_newmetatable(lua, "message writer")) {
    lua_pushcfunction(lua, writer_gc);
    lua_setfield(lua, -2, "__gc");
  }
  lua_setmetatable(lua, -2);
  w->into = malloc(sizeof *w->into + 64);
  if (!w->into) luaL_error(lua, "no memory for a message");
  w->into->size = 0;
  w->room = 64;
  for (int i = first; i <= last; ++i) put_value(lua, w, i, 0);
  message* const made = w->into;
  w->into = NULL;
  lua_settop(lua, last);
  each_channel_of(made, channel_retain);
  return made;
}

void message_free(message* unwanted) {
  if (!unwanted) return;
  each_channel_of(unwanted, channel_release);
  free(unwanted);
}

static bool push_value(lua_State* lua, reader* r) {
  luaL_checkstack(lua, 10, "message");
  size_t size;
  switch (*r->at++) {
    case tag_end: return false;
    case tag_nil: lua_pushnil(lua); return true;
    case tag_false: lua_pushboolean(lua, 0); return true;
    case tag_true: lua_pushboolean(lua, 1); return true;
    case tag_integer: {
      lua_Integer n;
      get(r, &n, sizeof n);
      lua_pushinteger(lua, n);
      return true;
    }
    case tag_float: {
      lua_Number n;
      get(r, &n, sizeof n);
      lua_pushnumber(lua, n);
      return true;
    }
    case tag_string: {
      const char* const text = get_sized(r, &size);
      lua_pushlstring(lua, text, size);
      return true;
    }
    case tag_table:
      lua_newtable(lua);
      while (push_value(lua, r)) {
        push_value(lua, r);
        lua_rawset(lua, -3);
      }
      return true;
    case tag_channel: {
      shared_channel* channel;
      get(r, &channel, sizeof channel);
      channel_push(lua, channel);
      return true;
    }
    case tag_globals: lua_pushglobaltable(lua); return true;
    default: { /* tag_function */
      const char* const code = get_sized(r, &size);
      if (luaL_loadbufferx(lua, code, size, "=go", "b")) lua_error(lua);
      for (int i = 1; push_value(lua, r); ++i) lua_setupvalue(lua, -2, i);
      return true;
    }
  }
}

int message_push(lua_State* lua, message* taken) {
  const int before = lua_gettop(lua);
  for (reader r = {taken->bytes, taken->bytes + taken->size}; r.at < r.end;) push_value(lua, &r);
  message_free(taken);
  return lua_gettop(lua) - before;
}
