/* Lua 5.4 on fibers. A machine is one Lua state with the strand that its fibers run in. go() makes a new machine, which
 * runs in parallel to all others and shares nothing. spawn() starts a fiber in the machine of its caller. Such fibers
 * share their variables and never run at the same time. Values go from machine to machine over channels, as copies.
 *
 * Only <ulexite/interop/ulexite.h> is used of the library. */
#ifndef MACHINE_H
#define MACHINE_H

#include <ulexite/interop/ulexite.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>

/* A channel of messages, counted: by each Lua object that names it, and by each message that carries it. */
typedef struct {
  atomic_int references;
  ulx_channel* of;
} shared_channel;

/* A copy of values, which any machine can read. */
typedef struct {
  size_t size;
  char bytes[];
} message;

typedef struct {
  lua_State* lua;
  ulx_strand* strand;
  int fibers; /* that run in it; changed by them only, and so without a lock */
} machine;

machine* machine_new(void);
/* One of its fibers ends. The last takes the machine with it. */
void machine_leave(machine* left);
/* Of that state. */
machine* machine_of(lua_State* lua);
/* Raises an error in words unless `error` is 0. */
void check(lua_State* lua, int error);

/* The values from `first` up to the top. Raises an error for what cannot be copied. */
message* message_of(lua_State* lua, int first);
/* Pushes the values, and frees the message. How many they are. */
int message_push(lua_State* lua, message* taken);
void message_free(message* unwanted);

void channel_retain(shared_channel* channel);
void channel_release(shared_channel* channel);
void channel_push(lua_State* lua, shared_channel* channel);
shared_channel* channel_at(lua_State* lua, int index);

/* What each adds to a state. */
void open_channels(lua_State* lua);
void open_fibers(lua_State* lua);
void open_tcp(lua_State* lua);

#endif
