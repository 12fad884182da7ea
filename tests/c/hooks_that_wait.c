/* A hook that waits is refused, in words that name it; the call that it was made for goes on. */
#include "check.h"

#include <unistd.h>

static int refused_in_start, refused_in_end, refused_in_allocate, refused_in_release;
static ulx_channel* empty;
static ulx_mutex* locked;

static bool held; /* the mutex, by a fiber that does not continue during this time */

static int wait_somehow(void) {
  if (!held || !ulx_id()) return 0; /* a plain thread may wait */
  char nothing;
  const int slept = ulx_sleep(MILLISECONDS), received = ulx_receive(empty, &nothing, ULX_FOREVER);
  const int got = ulx_mutex_lock(locked);
  ulx_yield(); /* does nothing here */
  CHECK_EQ(slept, ULX_EUSAGE);
  CHECK_EQ(received, ULX_EUSAGE);
  CHECK_EQ(got, ULX_EUSAGE);
  return 1;
}

static void* allocate(void* user, size_t bytes) {
  (void)user;
  refused_in_allocate += wait_somehow();
  return malloc(bytes ? bytes : 1);
}
static void release(void* user, void* memory) {
  (void)user;
  refused_in_release += wait_somehow();
  free(memory);
}
static void fiber_start(void* user, uint64_t id, void* data) {
  (void)user;
  (void)id;
  (void)data;
  refused_in_start += wait_somehow();
}
static void fiber_end(void* user, uint64_t id, void* data) {
  (void)user;
  (void)id;
  (void)data;
  refused_in_end += wait_somehow();
}

static intptr_t one(void* argument) { return (intptr_t)argument + 1; }
static void nothing(void* argument) { (void)argument; }

static intptr_t body(void* argument) {
  (void)argument;
  ulx_fiber* const fiber = ulx_spawn(one, (void*)6, NULL);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 7);
  ulx_fiber_release(fiber);
  CHECK_EQ(ulx_go(nothing, NULL, NULL), 0);
  struct {
    char bytes[100];
  } sent = {{4}}, got = {{0}}; /* too large for the channel's own memory */
  ulx_channel* const channel = ulx_channel_new(sizeof sent, ULX_UNBOUNDED);
  for (int i = 0; i < 100; ++i) CHECK_EQ(ulx_send(channel, &sent, ULX_FOREVER), 0);
  for (int i = 0; i < 100; ++i) CHECK_EQ(ulx_receive(channel, &got, ULX_FOREVER), 0);
  CHECK_EQ(got.bytes[0], 4);
  ulx_channel_destroy(channel);
  CHECK_EQ(ulx_sleep(1000), 0); /* no ban is left */
  return 42;
}

static intptr_t locks_meanwhile(void* argument) {
  CHECK_EQ(ulx_mutex_lock(locked), 0);
  held = true;
  CHECK_EQ(ulx_runtime_run(argument, body, NULL, NULL), 0); /* that of another runtime, which really blocks */
  held = false;
  return ulx_mutex_unlock(locked);
}

/* Everything that it says on stderr, in a file. */
static char said[1 << 16];
static void hear(int file) {
  CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
  const ssize_t size = read(file, said, sizeof said - 1);
  CHECK(size > 0);
  said[size] = 0;
}

int main(void) {
  FILE* const file = tmpfile();
  CHECK(file);
  const int before = dup(2);
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.allocate = allocate;
  hooks.release = release;
  hooks.fiber_start = fiber_start;
  hooks.fiber_end = fiber_end;
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.threads = 1; /* the counts above have no lock */
  options.hooks = &hooks;
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  options.hooks = NULL;
  ulx_runtime* const holder = ulx_runtime_new(&options);
  CHECK(runtime && holder);
  CHECK(empty = ulx_channel_new(1, 0));
  CHECK(locked = ulx_mutex_new());
  CHECK(dup2(fileno(file), 2) == 2);
  const int failed = ulx_runtime_run(holder, locks_meanwhile, runtime, NULL);
  CHECK(dup2(before, 2) == 2);
  CHECK_EQ(failed, 0);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  CHECK_EQ(ulx_runtime_destroy(holder, ULX_DRAIN, NULL), 0);
  CHECK_EQ(refused_in_start, 3);
  CHECK_EQ(refused_in_end, 3);
  CHECK(refused_in_allocate > 100);
  CHECK(refused_in_release > 100);
  hear(fileno(file));
  const char* const words[] = {"waits in a sleep under the hook fiber_start",
                               "waits in a sleep under a hook, on_thread_stack or a stopped_world",
                               /* of ulx_go */ "waits in a sleep under the hook fiber_end",
                               "waits to receive from channel under the hook allocate",
                               "waits for mutex under the hook release"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    if (!strstr(said, words[i])) {
      fprintf(stderr, "not said: %s\nbut: %.2000s\n", words[i], said);
      return 1;
    }
  puts("passed");
}
