/* Fibers in C: spawn, join, park, cancel, deadlines, data, names, keys. */
#include "check.h"

static intptr_t twice(void* argument) { return 2 * *(int*)argument; }
static void count(void* argument) { __atomic_add_fetch((int*)argument, 1, __ATOMIC_RELAXED); }

static void spawn_and_join(void) {
  int numbers[100];
  ulx_fiber* fibers[100];
  for (int i = 0; i < 100; ++i) {
    numbers[i] = i;
    CHECK(fibers[i] = ulx_spawn(twice, &numbers[i], NULL));
  }
  for (int i = 0; i < 100; ++i) {
    intptr_t result = -1;
    CHECK_EQ(ulx_join(fibers[i], ULX_FOREVER, &result), 0);
    CHECK_EQ(result, 2 * i);
    CHECK(ulx_done(fibers[i]));
    CHECK_EQ(ulx_join(fibers[i], 0, NULL), 0); /* as often as one likes */
    ulx_fiber_release(fibers[i]);
  }
  int counter = 0;
  for (int i = 0; i < 1000; ++i) CHECK_EQ(ulx_go(count, &counter, NULL), 0);
  while (__atomic_load_n(&counter, __ATOMIC_RELAXED) < 1000) ulx_yield();
}

static intptr_t own_things(void* argument) {
  CHECK(ulx_data() == argument);
  CHECK(ulx_self());
  CHECK_EQ(ulx_id(), ulx_fiber_id(ulx_self()));
  int other;
  CHECK_EQ(ulx_set_data(&other), 0);
  for (int i = 0; i < 20; ++i) {
    ulx_yield();
    CHECK(ulx_data() == &other);
  }
  const void *low, *high;
  CHECK(ulx_stack_bounds(&low, &high));
  const char* const here = __builtin_frame_address(0); /* AddressSanitizer keeps variables elsewhere */
  CHECK((const char*)low < here && here < (const char*)high);
  const void *same_low, *same_high;
  CHECK(ulx_stack_around(here, &same_low, &same_high));
  CHECK(same_low == low && same_high == high);
  CHECK_EQ(ulx_set_name("renamed"), 0);
  return 1;
}

static void options(void) {
  int data;
  ulx_spawn_options how = ULX_INIT(ulx_spawn_options);
  how.name = "named";
  how.stack_size = 64 * 1024;
  how.data = &data;
  ulx_fiber* const fiber = ulx_spawn(own_things, &data, &how);
  CHECK(fiber);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 1);
  ulx_fiber_release(fiber);
}

static intptr_t park_often(void* argument) {
  int taken = 0;
  while (ulx_park(ULX_FOREVER) == 0) {
    ++taken;
    __atomic_add_fetch((int*)argument, 1, __ATOMIC_RELAXED);
  }
  CHECK_EQ(ulx_park(ULX_FOREVER), ULX_ECANCELED);
  return taken;
}

static __attribute__((noinline)) void places_of_spawns(void);
struct place {
  uint64_t fiber;
  bool in_the_caller;
};
static void note_place(void* user, const ulx_fiber_info* fiber) {
  struct place* const found = user;
  const uintptr_t caller = (uintptr_t)places_of_spawns, code = (uintptr_t)fiber->code;
  if (fiber->id == found->fiber) found->in_the_caller = !fiber->file && code > caller && code < caller + 4096;
}

/* The place of a spawn is the caller's, also with a runtime. */
static void places_of_spawns(void) {
  ulx_spawn_options how = ULX_INIT(ulx_spawn_options);
  int taken = 0;
  for (int i = 0; i < 2; ++i) {
    if (i == 1) how.runtime = ulx_runtime_here();
    ulx_fiber* const fiber = ulx_spawn(park_often, &taken, &how);
    CHECK(fiber);
    struct place found = {ulx_fiber_id(fiber), false};
    ulx_for_each_fiber(ulx_runtime_here(), note_place, &found);
    CHECK(found.in_the_caller);
    ulx_cancel(fiber);
    CHECK_EQ(ulx_join(fiber, ULX_FOREVER, NULL), 0);
    ulx_fiber_release(fiber);
  }
}

static void parking(void) {
  CHECK_EQ(ulx_park(0), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_park(ulx_now() + MILLISECONDS), ULX_ETIMEDOUT);
  ulx_unpark(ulx_self());
  ulx_unpark(ulx_self()); /* one permit is kept */
  CHECK_EQ(ulx_park(ULX_FOREVER), 0);
  CHECK_EQ(ulx_park(0), ULX_ETIMEDOUT);
  int taken = 0;
  ulx_fiber* const other = ulx_spawn(park_often, &taken, NULL);
  for (int i = 1; i <= 100; ++i) {
    ulx_unpark(other);
    while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < i) ulx_yield();
  }
  CHECK(ulx_cancel(other));
  CHECK(!ulx_cancel(other));
  intptr_t result = 0;
  CHECK_EQ(ulx_join(other, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 100);
  ulx_fiber_release(other);
}

static intptr_t sleeps(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_sleep(3600 * SECONDS), ULX_ECANCELED);
  CHECK_EQ(ulx_check(), ULX_ECANCELED);
  CHECK(!ulx_shield(true));
  CHECK_EQ(ulx_check(), 0);
  CHECK_EQ(ulx_sleep(1000), 0);
  CHECK(ulx_shield(false));
  CHECK_EQ(ulx_check(), ULX_ECANCELED);
  return 7;
}

static void cancelling(void) {
  ulx_fiber* const fiber = ulx_spawn(sleeps, NULL, NULL);
  CHECK_EQ(ulx_join(fiber, ulx_now() + MILLISECONDS, NULL), ULX_ETIMEDOUT);
  ulx_fiber* const again = ulx_fiber_retain(fiber);
  ulx_fiber_release(fiber);
  ulx_cancel(again);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(again, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 7);
  ulx_fiber_release(again);

  ulx_deadline outer, inner;
  ulx_deadline_push(&outer, ulx_now() + 3600 * SECONDS);
  ulx_deadline_push(&inner, ulx_now() + MILLISECONDS);
  CHECK_EQ(ulx_sleep(3600 * SECONDS), ULX_EDEADLINE);
  CHECK_EQ(ulx_check(), ULX_EDEADLINE);
  ulx_deadline_pop(&inner);
  CHECK_EQ(ulx_check(), 0);
  ulx_deadline_pop(&outer);
  const int64_t before = ulx_now();
  CHECK_EQ(ulx_sleep_until(before + MILLISECONDS), 0);
  CHECK(ulx_now() >= before + MILLISECONDS);
}

static intptr_t checks(void* argument) {
  (void)argument;
  return ulx_check();
}

/* For a fiber or a plain thread. */
static void shielding(void) {
  ulx_deadline outer, inner;
  for (int met = 0; met < 2; ++met) {
    ulx_deadline_push(&outer, ulx_now() - 1);
    if (met) CHECK_EQ(ulx_check(), ULX_EDEADLINE);
    CHECK(!ulx_shield(true));
    CHECK_EQ(ulx_check(), 0);
    CHECK_EQ(ulx_sleep(1000), 0);
    CHECK(ulx_shield(true)); /* again, without effect */
    CHECK_EQ(ulx_check(), 0);
    ulx_deadline_push(&inner, ulx_now() - 1); /* one of its own counts */
    CHECK_EQ(ulx_check(), ULX_EDEADLINE);
    ulx_deadline_pop(&inner);
    CHECK_EQ(ulx_check(), 0);
    CHECK(ulx_shield(false));
    CHECK(!ulx_shield(false));
    CHECK_EQ(ulx_check(), ULX_EDEADLINE);
    ulx_deadline_pop(&outer);
    CHECK_EQ(ulx_check(), 0);
  }
}

static void shielding_from_an_inherited_deadline(void) {
  ulx_deadline outer;
  intptr_t result = -1;
  ulx_deadline_push(&outer, ulx_now() - 1);
  ulx_fiber* const hurries = ulx_spawn(checks, NULL, NULL);
  CHECK(!ulx_shield(true));
  ulx_fiber* const has_time = ulx_spawn(checks, NULL, NULL);
  CHECK_EQ(ulx_join(hurries, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, ULX_EDEADLINE);
  CHECK_EQ(ulx_join(has_time, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 0);
  CHECK(ulx_shield(false));
  ulx_deadline_pop(&outer);
  ulx_fiber_release(hurries);
  ulx_fiber_release(has_time);
}

static int destroyed;
static void destroy(void* value) { destroyed += *(int*)value; }
static ulx_key key;
static intptr_t uses_key(void* argument) {
  CHECK(!ulx_get(key));
  CHECK_EQ(ulx_set(key, argument), 0);
  ulx_yield();
  CHECK(ulx_get(key) == argument);
  return 0;
}

static void keys(void) {
  destroyed = 0;
  if (!key) key = ulx_key_new(destroy); /* a key stays for the process */
  CHECK(key);
  int one = 1, two = 2;
  CHECK_EQ(ulx_set(key, &two), 0);
  ulx_fiber* const fiber = ulx_spawn(uses_key, &one, NULL);
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(fiber);
  CHECK(ulx_get(key) == &two);
  CHECK_EQ(ulx_set(key, NULL), 0);
}

static intptr_t cancels(void* fiber) { return ulx_cancel(fiber); }

/* The main fiber has a whole handle too. */
static ulx_fiber* main_handle;
static int hook_data;
static int hooks_called;
static void fiber_start(void* user, uint64_t id, void* data) {
  (void)user;
  CHECK(!data);
  CHECK(ulx_self());
  CHECK_EQ(ulx_fiber_id(ulx_self()), id);
  CHECK_EQ(ulx_set_data(&hook_data), 0);
  ++hooks_called;
}
static void fiber_end(void* user, uint64_t id, void* data) {
  (void)user;
  CHECK(data == &hook_data);
  CHECK_EQ(ulx_fiber_id(ulx_self()), id);
  ++hooks_called;
}

static intptr_t is_main(void* argument) {
  (void)argument;
  CHECK(ulx_data() == &hook_data);
  CHECK(ulx_self());
  CHECK(ulx_id() != 0);
  CHECK_EQ(ulx_fiber_id(ulx_self()), ulx_id());
  main_handle = ulx_fiber_retain(ulx_self());
  ulx_fiber* const other = ulx_spawn(cancels, main_handle, NULL);
  CHECK(other);
  CHECK_EQ(ulx_sleep(3600 * SECONDS), ULX_ECANCELED);
  CHECK_EQ(ulx_check(), ULX_ECANCELED);
  CHECK(!ulx_cancel(main_handle)); /* the second time, and by itself */
  CHECK(!ulx_shield(true));
  intptr_t first = 0;
  CHECK_EQ(ulx_join(other, ULX_FOREVER, &first), 0);
  CHECK(first);
  ulx_fiber_release(other);
  return (intptr_t)ulx_id();
}

static void main_fiber(void) {
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.fiber_start = fiber_start;
  hooks.fiber_end = fiber_end;
  ulx_runtime_options with_hooks = ULX_INIT(ulx_runtime_options);
  with_hooks.threads = 1; /* the count of the hooks has no lock */
  with_hooks.hooks = &hooks;
  ulx_runtime* const runtime = ulx_runtime_new(&with_hooks);
  CHECK(runtime);
  intptr_t result = 0;
  CHECK_EQ(ulx_runtime_run(runtime, is_main, NULL, &result), 0);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  CHECK_EQ(hooks_called, 4);
  CHECK(ulx_done(main_handle));
  CHECK_EQ(ulx_fiber_id(main_handle), (uint64_t)result);
  CHECK(!ulx_cancel(main_handle));
  ulx_fiber_release(main_handle);
}

static intptr_t body(void* runtime) {
  CHECK(ulx_runtime_here() == runtime);
  spawn_and_join();
  options();
  places_of_spawns();
  parking();
  cancelling();
  shielding();
  shielding_from_an_inherited_deadline();
  keys();
  ulx_safepoint();
  return 42;
}

int main(void) {
  CHECK_EQ(ulx_abi_version(), ULX_ABI_VERSION);
  CHECK(strchr(ulx_version(), '.'));
  CHECK(!ulx_runtime_here());
  shielding();
  main_fiber();
  run_with_each_width(body);
  puts("passed");
}
