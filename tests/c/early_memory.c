/* The hooks for memory are set once, and only while nothing has memory of malloc. */
#include "check.h"

static long blocks;
static void* allocate(void* user, size_t bytes) {
  (void)user;
  __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
  return malloc(bytes);
}
static void release(void* user, void* memory) {
  (void)user;
  if (memory) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
  free(memory);
}

int main(void) {
  ulx_channel* const early = ulx_channel_new(8, 4);
  CHECK(early);
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.allocate = allocate;
  hooks.release = release;
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.hooks = &hooks;
  CHECK(!ulx_runtime_new(&options));
  CHECK_EQ(errno, EINVAL);
  ulx_channel_destroy(early);

  /* A runtime that is refused sets nothing. */
  options.on_deadlock = 17;
  CHECK(!ulx_runtime_new(&options));
  CHECK_EQ(errno, EINVAL);
  ulx_channel_destroy(ulx_channel_new(8, 4));
  CHECK_EQ(blocks, 0);

  options.on_deadlock = ULX_DEADLOCK_REPORT;
  hooks.user = &hooks;
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  CHECK(runtime);
  ulx_channel* const late = ulx_channel_new(8, 4);
  CHECK(blocks > 0);
  ulx_channel_destroy(late);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  CHECK_EQ(blocks, 0);
  puts("passed");
  return 0;
}
