/* lua_fibers FILE [ARGUMENT...]: runs a script of Lua 5.4 whose fibers use all cores. docs/embedding-lua.md tells how
 * it is built. When the script ends, its fibers are asked to stop. */
#include "machine.h"

#include <stdio.h>

typedef struct {
  int count;
  char** words;
} command_line;

static int traceback(lua_State* lua) {
  luaL_traceback(lua, lua, luaL_tolstring(lua, 1, NULL), 1);
  return 1;
}

static intptr_t run(void* argument) {
  const command_line* const given = argument;
  machine* const first = machine_new();
  if (!first) return 1;
  ulx_migrate_to(first->strand);
  ++first->fibers;
  lua_State* const lua = lua_newthread(first->lua); /* stays at the bottom of the main thread's stack */
  lua_createtable(lua, given->count, 0);
  for (int i = 0; i < given->count; ++i) {
    lua_pushstring(lua, given->words[i]);
    lua_rawseti(lua, -2, i - 1);
  }
  lua_setglobal(lua, "arg");
  lua_pushcfunction(lua, traceback);
  const bool good = luaL_loadfile(lua, given->words[1]) == LUA_OK && lua_pcall(lua, 0, 0, 1) == LUA_OK;
  if (!good) fprintf(stderr, "lua_fibers: %s\n", lua_tostring(lua, -1));
  machine_leave(first);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s FILE [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.stack_size = 1 << 20; /* Lua nests 200 calls of C, and a string.gsub takes 2 KiB of stack with its callback */
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  if (!runtime) {
    perror("lua_fibers");
    return 1;
  }
  command_line given = {argc, argv};
  intptr_t result = 1;
  const int error = ulx_runtime_run(runtime, run, &given, &result);
  if (error) fprintf(stderr, "lua_fibers: %s\n", ulx_strerror(error));
  ulx_runtime_destroy(runtime, ULX_CANCEL, NULL);
  return error ? 1 : (int)result;
}
