/* The functions for a collector: hooks for memory, threads and fibers, a stopped world, the stacks and records of
 * all fibers. */
#include "check.h"
#include "words.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static int hooks_user, threads, idles, fibers_started, fibers_ended, blocks;

static void* allocate(void* user, size_t bytes) {
  CHECK(user == &hooks_user);
  __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
  return malloc(bytes ? bytes : 1);
}
static void release(void* user, void* memory) {
  CHECK(user == &hooks_user);
  __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
  free(memory);
}
static void thread_start(void* user, bool worker) {
  (void)user;
  (void)worker;
  __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
}
static void thread_stop(void* user, bool worker) {
  (void)user;
  (void)worker;
  __atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
}
static void thread_idle(void* user, void (*sleep)(void*), void* data) {
  (void)user;
  __atomic_add_fetch(&idles, 1, __ATOMIC_RELAXED);
  sleep(data);
}
static void fiber_start(void* user, uint64_t id, void* data) {
  (void)user;
  (void)data;
  CHECK(id == ulx_id());
  __atomic_add_fetch(&fibers_started, 1, __ATOMIC_RELAXED);
}
static void fiber_end(void* user, uint64_t id, void* data) {
  (void)user;
  (void)id;
  (void)data;
  __atomic_add_fetch(&fibers_ended, 1, __ATOMIC_RELAXED);
}

enum { waiters = 50 };
static ulx_channel* never;
static int waiting;

static intptr_t waits(void* object) {
  void* volatile held = object;
  __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
  int nothing;
  CHECK_EQ(ulx_receive(never, &nothing, ULX_FOREVER), ULX_ECLOSED);
  CHECK(held == object);
  return 0;
}

struct search {
  void** objects;
  int on_stacks, in_records, fibers, frames, running;
};

static void visit(void* user, const ulx_fiber_info* fiber) {
  struct search* const search = user;
  ++search->fibers;
  CHECK_EQ(fiber->size, sizeof *fiber);
  if (fiber->state == ULX_RUNNING) {
    ++search->running;
    return;
  }
  CHECK_EQ(fiber->state, ULX_WAITING);
  CHECK(!strcmp(fiber->waits, "to receive from channel"));
  CHECK(!strcmp(fiber->name, "waiter"));
  CHECK(fiber->data == &hooks_user);
  void* frames[20];
  search->frames += ulx_backtrace(fiber, frames, 20) > 3;
  for (int i = 0; i < waiters; ++i) {
    search->on_stacks += holds(fiber->sp, fiber->high, search->objects[i]) > 0;
    search->in_records += holds(fiber->record, (const char*)fiber->record + fiber->record_size, search->objects[i]) > 0;
  }
}

static void* stops_too(void* runtime) { return (void*)(intptr_t)ulx_stop_world(runtime, SECONDS, NULL, NULL); }

static intptr_t drains(void* pipes) {
  const int from = *(int*)pipes;
  char room[4096];
  while (ulx_wait_fd(from, ULX_READ, ULX_FOREVER, NULL) == 0 && read(from, room, sizeof room) > 0) continue;
  return close(from);
}
/* A full pipe makes the dump wait, and one without a reader raises no signal. */
static void dump_into_a_pipe(ulx_runtime* runtime) {
  static const char full[4096];
  int pipes[2];
  CHECK_EQ(pipe2(pipes, O_NONBLOCK), 0);
  while (write(pipes[1], full, sizeof full) > 0) continue;
  ulx_fiber* const reader = ulx_spawn(drains, pipes, NULL);
  CHECK_EQ(ulx_dump(runtime, pipes[1]), 0);
  close(pipes[1]);
  CHECK_EQ(ulx_join(reader, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(reader);
  CHECK_EQ(pipe2(pipes, O_NONBLOCK), 0);
  close(pipes[0]);
  CHECK_EQ(ulx_dump(runtime, pipes[1]), EPIPE);
  close(pipes[1]);
}

static intptr_t one(void* argument) {
  (void)argument;
  return 1;
}

static intptr_t body(void* argument) {
  ulx_runtime* const runtime = argument;
  waiting = 0;
  CHECK(never = ulx_channel_new(sizeof(int), 0));
  void* objects[waiters];
  ulx_fiber* all[waiters];
  ulx_spawn_options how = ULX_INIT(ulx_spawn_options);
  how.name = "waiter";
  how.data = &hooks_user;
  for (int i = 0; i < waiters; ++i) {
    objects[i] = malloc(16);
    CHECK(all[i] = ulx_spawn(waits, objects[i], &how));
  }
  while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < waiters) ulx_yield();
  ulx_sleep(5 * MILLISECONDS);
  for (int round = 0; round < 20; ++round) {
    struct search search = {.objects = objects};
    CHECK_EQ(ulx_stop_world(runtime, 20 * SECONDS, NULL, NULL), 0);
    CHECK_EQ(ulx_stop_world(runtime, SECONDS, NULL, NULL), ULX_EUSAGE);
    pthread_t second;
    void* refused;
    CHECK_EQ(pthread_create(&second, NULL, stops_too, runtime), 0);
    CHECK_EQ(pthread_join(second, &refused), 0);
    CHECK_EQ((intptr_t)refused, ULX_EUSAGE);
    CHECK_EQ(ulx_sleep(MILLISECONDS), ULX_EUSAGE);
    ulx_for_each_fiber(runtime, visit, &search);
    CHECK_EQ(ulx_start_world(runtime), 0);
    CHECK_EQ(search.fibers, waiters + 1);
    CHECK_EQ(search.running, 1);
    CHECK_EQ(search.in_records, waiters);
    CHECK_EQ(search.frames, waiters);
#ifndef ULX_TEST_FAKE_STACKS
    CHECK_EQ(search.on_stacks, waiters);
#endif
    ulx_yield();
  }
  CHECK_EQ(ulx_start_world(runtime), ULX_EUSAGE);
  intptr_t result = 0;
  CHECK_EQ(ulx_blocking(one, NULL, &result), 0);
  ulx_close(never);
  for (int i = 0; i < waiters; ++i) {
    CHECK_EQ(ulx_join(all[i], ULX_FOREVER, NULL), 0);
    ulx_fiber_release(all[i]);
    free(objects[i]);
  }
  ulx_channel_destroy(never);
  CHECK_EQ(ulx_dump(runtime, 2), 0);
  CHECK_EQ(ulx_dump(runtime, -1), EBADF);
  dump_into_a_pipe(runtime);
  return 42;
}

static int late_calls;
static bool over, begun;
static uint64_t hog_id;
/* A worker between two fibers, which looks for work, may be late too. */
static void late(void* user, uint64_t fiber) {
  (void)user;
  late_calls += fiber == hog_id;
}
static void hog(void* argument) {
  (void)argument;
  hog_id = ulx_id();
  __atomic_store_n(&begun, true, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
  }
}

int main(void) {
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.user = &hooks_user;
  hooks.allocate = allocate;
  hooks.release = release;
  hooks.thread_start = thread_start;
  hooks.thread_stop = thread_stop;
  hooks.thread_idle = thread_idle;
  hooks.fiber_start = fiber_start;
  hooks.fiber_end = fiber_end;
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.hooks = &hooks;
  for (options.threads = 1; options.threads <= 8; options.threads *= 2) {
    options.max_threads = 8;
    ulx_runtime* const runtime = ulx_runtime_new(&options);
    CHECK(runtime);
    intptr_t result = 0;
    CHECK_EQ(ulx_runtime_run(runtime, body, runtime, &result), 0);
    CHECK_EQ(result, 42);
    CHECK(threads > 0);

    over = begun = false;
    ulx_spawn_options there = ULX_INIT(ulx_spawn_options);
    there.runtime = runtime;
    CHECK_EQ(ulx_go(hog, NULL, &there), 0);
    while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST)) usleep(100);
    late_calls = 0;
    CHECK_EQ(ulx_stop_world(runtime, 20 * MILLISECONDS, late, NULL), ULX_ETIMEDOUT);
    CHECK_EQ(late_calls, 1);
    __atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
    CHECK_EQ(ulx_stop_world(runtime, 20 * SECONDS, NULL, NULL), 0);
    CHECK_EQ(ulx_start_world(runtime), 0);
    CHECK_EQ(ulx_runtime_resize(runtime, 8), 0);
    CHECK_EQ(ulx_runtime_resize(runtime, 1), 0);
    CHECK_EQ(ulx_runtime_resize(runtime, 0), EINVAL);
    CHECK_EQ(ulx_runtime_resize(runtime, 9), EINVAL);
    CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
    CHECK_EQ(threads, 0);
    CHECK_EQ(fibers_started, fibers_ended);
    CHECK_EQ(blocks, 0);
  }
  CHECK(idles > 0);
  CHECK_EQ(fibers_started, 4 * (waiters + 3));
  puts("passed");
}
