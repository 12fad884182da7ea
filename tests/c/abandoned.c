/* Fibers that a runtime abandons have ended for those that hold their handles. */
#include "check.h"

static ulx_fiber *parked, *fresh;

static intptr_t parks(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_pin(), 0); /* its end is up to the thread that abandons the fiber */
  return ulx_park(ULX_FOREVER) == 0 ? 1 : 2;
}

static intptr_t body(void* argument) {
  (void)argument;
  CHECK(parked = ulx_spawn(parks, NULL, NULL));
  for (int i = 0; i < 100; ++i) ulx_yield();
  CHECK(fresh = ulx_spawn(parks, NULL, NULL));
  return 0;
}

int main(void) {
  for (size_t threads = 1; threads <= 16; threads *= 4) {
    ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
    options.threads = threads;
    ulx_runtime* const runtime = ulx_runtime_new(&options);
    CHECK(runtime);
    CHECK_EQ(ulx_runtime_run(runtime, body, NULL, NULL), 0);
    CHECK_EQ(ulx_join(parked, 0, NULL), ULX_ETIMEDOUT);
    size_t abandoned = 0;
    CHECK_EQ(ulx_runtime_destroy(runtime, ULX_STOP, &abandoned), 0);
    CHECK_EQ(abandoned, 2);
    ulx_fiber* const both[] = {parked, fresh};
    for (int i = 0; i < 2; ++i) {
      intptr_t result = 7;
      CHECK(ulx_done(both[i]));
      CHECK_EQ(ulx_join(both[i], ULX_FOREVER, &result), 0);
      CHECK_EQ(result, 0);
      ulx_fiber_release(both[i]);
    }
  }
  puts("passed");
  return 0;
}
