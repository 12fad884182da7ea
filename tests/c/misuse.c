/* Wrong use gets an error, and the program goes on. */
#include "check.h"

static intptr_t body(void* argument) {
  ulx_runtime* const runtime = argument;
  intptr_t result;
  CHECK_EQ(ulx_runtime_run(runtime, body, runtime, &result), ULX_EUSAGE);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_CANCEL, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_join(ulx_self(), ULX_FOREVER, NULL), ULX_EUSAGE);
  ulx_spawn_options options = {0};
  CHECK(!ulx_spawn(body, NULL, &options));
  CHECK_EQ(errno, EINVAL);
  options.size = sizeof options;
  options.stack_size = SIZE_MAX;
  CHECK(!ulx_spawn(body, NULL, &options));
  CHECK_EQ(errno, EINVAL);
  ulx_channel* const one = ulx_channel_new(8, 0);
  CHECK(one != NULL);
  ulx_channel_destroy(one);
  CHECK_EQ(ulx_set(0, NULL), EINVAL);
  CHECK(!ulx_spawn(NULL, NULL, NULL));
  CHECK_EQ(errno, ULX_EUSAGE);
  CHECK_EQ(ulx_go(NULL, NULL, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_blocking(NULL, NULL, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_on_thread_stack(NULL, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_strand_destroy(NULL), 0);
  CHECK_EQ(ulx_runtime_destroy(NULL, ULX_CANCEL, NULL), 0);
  CHECK_EQ(ulx_trace_stop(runtime, 2), ULX_EUSAGE);
  return 42;
}

static void nothing(void* argument) { (void)argument; }
static intptr_t spawns_many(void* argument) {
  (void)argument;
  int error = 0, spawned = 0;
  while (!(error = ulx_go(nothing, NULL, NULL)) && spawned < 100) ++spawned;
  CHECK_EQ(error, ULX_ELIMIT);
  return 0;
}

static intptr_t deadlocks(void* argument) {
  ulx_channel* const channel = argument;
  int value;
  CHECK_EQ(ulx_receive(channel, &value, ULX_FOREVER), ULX_ECANCELED);
  return 0;
}

static void* other_allocate(void* user, size_t bytes) {
  (void)user;
  return malloc(bytes);
}
static void other_release(void* user, void* memory) {
  (void)user;
  free(memory);
}

int main(void) {
  run_with_each_width(body);

  /* on a plain thread */
  CHECK(!ulx_spawn(body, NULL, NULL));
  CHECK_EQ(errno, ULX_EUSAGE);
  CHECK_EQ(ulx_go(nothing, NULL, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_park(0), ULX_EUSAGE);
  CHECK_EQ(ulx_set_data(NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_set_name("x"), ULX_EUSAGE);
  CHECK_EQ(ulx_migrate_to(NULL), ULX_EUSAGE);
  CHECK(!ulx_strand_new(NULL, "x"));
  CHECK(!ulx_self() && !ulx_data() && ulx_id() == 0);
  const void *low, *high;
  CHECK(!ulx_stack_bounds(&low, &high));
  CHECK(!ulx_stack_around(&low, &low, &high));
  CHECK_EQ(ulx_pin(), 0); /* it stays on itself */
  CHECK_EQ(ulx_unpin(), 0);

  /* structs of an unknown size */
  struct {
    ulx_runtime_options known;
    long later;
  } newer = {ULX_INIT(ulx_runtime_options), 0};
  newer.known.size = sizeof newer;
  newer.known.threads = 1;
  ulx_runtime* const accepted = ulx_runtime_new(&newer.known);
  CHECK(accepted);
  CHECK_EQ(ulx_runtime_run(accepted, NULL, NULL, NULL), ULX_EUSAGE);
  newer.later = 1;
  CHECK(!ulx_runtime_new(&newer.known));
  CHECK_EQ(errno, EINVAL);
  newer.known.size = 0;
  CHECK(!ulx_runtime_new(&newer.known));
  CHECK_EQ(errno, EINVAL);
  ulx_metrics metrics;
  memset(&metrics, 0, sizeof metrics);
  CHECK_EQ(ulx_runtime_metrics(accepted, &metrics), EINVAL);
  CHECK_EQ(ulx_trace_start(accepted, SIZE_MAX), EINVAL);
  metrics.size = offsetof(ulx_metrics, workers_sleeping);
  CHECK_EQ(ulx_runtime_metrics(accepted, &metrics), 0);
  CHECK_EQ(ulx_runtime_destroy(accepted, 7, NULL), EINVAL);
  CHECK_EQ(ulx_runtime_destroy(accepted, ULX_DRAIN, NULL), 0);

  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.on_deadlock = 17;
  CHECK(!ulx_runtime_new(&options));
  options.on_deadlock = ULX_DEADLOCK_FAIL;
  options.max_fibers = 10;
  options.threads = 2;
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.allocate = other_allocate;
  options.hooks = &hooks;
  CHECK(!ulx_runtime_new(&options));
  CHECK_EQ(errno, EINVAL);
  hooks.release = other_release;
  ulx_runtime* const limited = ulx_runtime_new(&options);
  CHECK(limited);
  hooks.user = &hooks;
  CHECK(!ulx_runtime_new(&options)); /* the process has other memory */
  CHECK_EQ(ulx_runtime_run(limited, spawns_many, NULL, NULL), 0);
  ulx_channel* const channel = ulx_channel_new(sizeof(int), 0);
  CHECK_EQ(ulx_runtime_run(limited, deadlocks, channel, NULL), ULX_EDEADLOCK);
  CHECK_EQ(ulx_runtime_destroy(limited, ULX_CANCEL, NULL), 0);
  ulx_channel_destroy(channel);

  for (int error = 0; error < 5000; ++error) CHECK(ulx_strerror(error) && *ulx_strerror(error));
  puts("passed");
}
