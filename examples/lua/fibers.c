/* Machines, their fibers, and what these ask for. */
#include "machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a fiber begins with, and ends with. */
typedef struct {
  atomic_int references; /* the fiber's, and those of Lua's objects */
  ulx_fiber* fiber;
  machine* in;
  lua_State* thread;  /* of spawn: Lua's own thread, in a table with the function, its arguments, later its results */
  int kept;           /* the entry of the registry with this table; the user value of Lua's object is the table too */
  message* arguments; /* of go: the function, and its arguments */
  message* results;   /* of go, at its end: true and its values, or false and an error */
  char* untold;       /* that error in words, until a join has raised it; of a fiber that was not asked to stop */
} beginning;

static void release(beginning* b) {
  if (atomic_fetch_sub(&b->references, 1) != 1) return;
  if (b->untold) fprintf(stderr, "lua: a fiber ended with an error: %s\n", b->untold);
  free(b->untold);
  message_free(b->results);
  ulx_fiber_release(b->fiber);
  free(b);
}

void check(lua_State* lua, int error) {
  if (error) luaL_error(lua, "%s", ulx_strerror(error));
}

machine* machine_of(lua_State* lua) { return *(machine**)lua_getextraspace(lua); }

/* A loop in Lua cannot keep its worker. */
static void make_room(lua_State* lua, lua_Debug* event) {
  (void)lua;
  (void)event;
  ulx_safepoint();
}

machine* machine_new(void) {
  machine* const made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->strand = ulx_strand_new(NULL, "lua");
  made->lua = luaL_newstate();
  if (!made->strand || !made->lua) {
    if (made->lua) lua_close(made->lua);
    if (made->strand) ulx_strand_destroy(made->strand);
    free(made);
    return NULL;
  }
  *(machine**)lua_getextraspace(made->lua) = made; /* which Lua copies to each thread of the state */
  luaL_openlibs(made->lua);
  open_channels(made->lua);
  open_fibers(made->lua);
  open_tcp(made->lua);
  lua_sethook(made->lua, make_room, LUA_MASKCOUNT, 10000);
  return made;
}

/* The last fiber of a machine ends it, from outside of its strand. */
void machine_leave(machine* left) {
  if (--left->fibers > 0) return;
  lua_close(left->lua);
  ulx_migrate_to(NULL);
  ulx_strand_destroy(left->strand);
  free(left);
}

/* On top: what lua_pcall has left, above `base`. The results of spawn stay in its machine, so they are not copied. */
static void keep_results(beginning* b, lua_State* lua, int base, int status) {
  luaL_checkstack(lua, 4, "the results of a fiber");
  lua_pushboolean(lua, status == LUA_OK);
  lua_insert(lua, base + 1);
  if (status != LUA_OK && ulx_check() == 0) {
    b->untold = strdup(luaL_tolstring(lua, base + 2, NULL));
    lua_pop(lua, 1);
  }
  if (!b->thread) {
    b->results = message_of(lua, base + 1);
    return;
  }
  const int count = lua_gettop(lua) - base;
  lua_createtable(lua, count, 1);
  lua_insert(lua, base + 1);
  for (int i = count; i >= 1; --i) lua_rawseti(lua, base + 1, i);
  lua_pushinteger(lua, count);
  lua_setfield(lua, base + 1, "n");
  lua_rawgeti(lua, LUA_REGISTRYINDEX, b->kept);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "results");
}

/* Protected, because it may raise errors. */
static int run_and_keep(lua_State* lua) {
  beginning* const b = lua_touserdata(lua, 1);
  lua_settop(lua, 1);
  int count = b->thread ? 0 : message_push(lua, b->arguments);
  b->arguments = NULL;
  if (b->thread) { /* its function and arguments lie below this call's frame: they are taken from the registry */
    lua_rawgeti(lua, LUA_REGISTRYINDEX, b->kept);
    count = (int)lua_rawlen(lua, 2);
    for (int i = 1; i <= count; ++i) lua_rawgeti(lua, 2, i);
    lua_remove(lua, 2);
  }
  const int status = lua_pcall(lua, count - 1, LUA_MULTRET, 0);
  keep_results(b, lua, 1, status);
  return 0;
}

static intptr_t fiber_main(void* argument) {
  beginning* const b = argument;
  machine* const in = b->in;
  lua_State* const lua = b->thread ? b->thread : in->lua;
  lua_pushcfunction(lua, run_and_keep);
  lua_pushlightuserdata(lua, b);
  if (lua_pcall(lua, 1, 0, 0) != LUA_OK) { /* such as results of go that cannot be copied */
    free(b->untold);
    const char* const words = lua_tostring(lua, -1); /* __tostring could raise again */
    b->untold = strdup(words ? words : "an error without words");
  }
  lua_settop(lua, 0);
  if (b->thread) luaL_unref(in->lua, LUA_REGISTRYINDEX, b->kept);
  machine_leave(in);
  release(b);
  return 0;
}

static beginning* beginning_in(machine* in) {
  beginning* const b = calloc(1, sizeof *b);
  if (!b) return NULL;
  atomic_init(&b->references, 2);
  b->in = in;
  return b;
}

/* Pushes the handle of a fiber that begins. */
static int start(lua_State* lua, beginning* b) {
  beginning** const object = lua_newuserdatauv(lua, sizeof *object, 1);
  *object = b;
  luaL_setmetatable(lua, "fiber");
  if (b->thread) {
    lua_rawgeti(lua, LUA_REGISTRYINDEX, b->kept);
    lua_setiuservalue(lua, -2, 1);
  }
  ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
  options.name = "lua";
  options.strand = b->in->strand;
  ++b->in->fibers;
  b->fiber = ulx_spawn(fiber_main, b, &options);
  if (b->fiber) return 1;
  const int error = errno;
  --b->in->fibers;
  release(b); /* for the fiber that does not come; Lua's object has the other */
  return luaL_error(lua, "no fiber: %s", ulx_strerror(error));
}

/* go(f, ...): a fiber with a machine of its own. f and the arguments are copied. */
static int lua_go(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  message* const arguments = message_of(lua, 1);
  machine* const in = machine_new();
  beginning* const b = in ? beginning_in(in) : NULL;
  if (!b) {
    message_free(arguments);
    return luaL_error(lua, "no memory for a machine");
  }
  b->arguments = arguments;
  return start(lua, b);
}

/* spawn(f, ...): a fiber in the same machine, with the same variables. */
static int lua_spawn(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const int count = lua_gettop(lua);
  beginning* const b = beginning_in(machine_of(lua));
  if (!b) return luaL_error(lua, "no memory for a fiber");
  lua_createtable(lua, count + 1, 0);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    lua_rawseti(lua, -2, i);
  }
  b->thread = lua_newthread(lua);
  lua_setfield(lua, -2, "thread"); /* kept with them */
  b->kept = luaL_ref(lua, LUA_REGISTRYINDEX);
  return start(lua, b);
}

static beginning* fiber_at(lua_State* lua, int index) { return *(beginning**)luaL_checkudata(lua, index, "fiber"); }

/* Pushes the results of the fiber at 1, and forgets them. 0: there are none. */
static int take_results(lua_State* lua, beginning* b) {
  if (!b->thread) {
    message* const results = b->results;
    b->results = NULL;
    return results ? message_push(lua, results) : 0;
  }
  lua_settop(lua, 1);
  lua_getiuservalue(lua, 1, 1);
  if (lua_getfield(lua, 2, "results") == LUA_TNIL) return 0;
  lua_getfield(lua, 3, "n");
  const int count = (int)lua_tointeger(lua, -1);
  luaL_checkstack(lua, count + 1, "the results of a fiber");
  for (int i = 1; i <= count; ++i) lua_rawgeti(lua, 3, i);
  lua_pushnil(lua);
  lua_setfield(lua, 2, "results");
  return count;
}

/* f:join(): waits for its end. Its results, once; or raises the error that it ended with. */
static int fiber_join(lua_State* lua) {
  beginning* const b = fiber_at(lua, 1);
  check(lua, ulx_join(b->fiber, ULX_FOREVER, NULL));
  const int count = take_results(lua, b);
  if (count == 0) lua_pushstring(lua, b->untold ? b->untold : "the results of this fiber were taken already");
  free(b->untold);
  b->untold = NULL;
  if (count == 0) return lua_error(lua);
  if (lua_toboolean(lua, -count)) return count - 1;
  lua_pushvalue(lua, -count + 1);
  return lua_error(lua);
}

/* f:cancel(): its wait, and each later one, raises an error. */
static int fiber_cancel(lua_State* lua) {
  lua_pushboolean(lua, ulx_cancel(fiber_at(lua, 1)->fiber));
  return 1;
}

static int fiber_gc(lua_State* lua) {
  release(fiber_at(lua, 1));
  return 0;
}

static int lua_sleep(lua_State* lua) {
  const lua_Number seconds = luaL_checknumber(lua, 1);
  check(lua, ulx_sleep(seconds >= 1e9 ? INT64_MAX / 2 : (int64_t)(seconds * 1e9)));
  return 0;
}

static int lua_yield_fiber(lua_State* lua) {
  (void)lua;
  ulx_yield();
  return 0;
}

static int lua_now(lua_State* lua) {
  lua_pushnumber(lua, (lua_Number)ulx_now() / 1e9);
  return 1;
}

void open_fibers(lua_State* lua) {
  static const luaL_Reg methods[] = {{"join", fiber_join}, {"cancel", fiber_cancel}, {"__gc", fiber_gc}, {NULL, NULL}};
  luaL_newmetatable(lua, "fiber");
  luaL_setfuncs(lua, methods, 0);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
  lua_register(lua, "go", lua_go);
  lua_register(lua, "spawn", lua_spawn);
  lua_register(lua, "sleep", lua_sleep);
  lua_register(lua, "yield", lua_yield_fiber);
  lua_register(lua, "now", lua_now);
}
