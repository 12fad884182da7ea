/* Where waiting is forbidden: in hooks, and between ulx_forbid_waiting and ulx_allow_waiting. */
#include "check.h"

#include <unistd.h>

static int ends[2];
static int starts;

static void fiber_start(void* user, uint64_t id, void* data) {
  (void)user;
  (void)id;
  CHECK_EQ(ulx_wait_fd(ends[0], ULX_READ, ULX_FOREVER, NULL), ULX_EUSAGE);
  ulx_poll one = {.fd = ends[0], .wanted = ULX_READ};
  CHECK_EQ(ulx_wait_fds(&one, 1, ULX_FOREVER), ULX_EUSAGE);
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EUSAGE);
  CHECK_EQ(ulx_pin(), ULX_EUSAGE);
  if (data) CHECK_EQ(ulx_forbid_waiting(), 0); /* until the fiber allows it */
  ++starts;
}

static intptr_t stays(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EUSAGE);
  CHECK_EQ(ulx_allow_waiting(), 0);
  CHECK_EQ(ulx_sleep(1), 0);
  CHECK_EQ(ulx_allow_waiting(), ULX_EUSAGE);
  return 0;
}

/* A shield that begins outside of the ban, and ends in it, gives the deadline back. */
static void check_deadline(void) {
  ulx_deadline outer;
  ulx_deadline_push(&outer, ulx_now());
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EDEADLINE);
  CHECK(!ulx_shield(true));
  CHECK_EQ(ulx_sleep(1), 0);
  CHECK_EQ(ulx_forbid_waiting(), 0);
  CHECK(ulx_shield(false));
  CHECK_EQ(ulx_allow_waiting(), 0);
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EDEADLINE);
  ulx_deadline_pop(&outer);
  CHECK_EQ(ulx_sleep(1), 0);
}

static intptr_t body(void* argument) {
  (void)argument;
  ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
  options.data = &ends;
  ulx_fiber* const banned = ulx_spawn(stays, NULL, &options);
  CHECK(banned);
  CHECK_EQ(ulx_join(banned, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(banned);
  check_deadline();
  for (int i = 0; i < 100; ++i) CHECK_EQ(ulx_forbid_waiting(), 0);
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EUSAGE);
  ulx_runtime* const other = ulx_runtime_new(NULL);
  CHECK_EQ(ulx_runtime_destroy(other, ULX_DRAIN, NULL), ULX_EUSAGE);
  for (int i = 0; i < 100; ++i) CHECK_EQ(ulx_allow_waiting(), 0);
  CHECK_EQ(ulx_runtime_destroy(other, ULX_DRAIN, NULL), 0);
  CHECK_EQ(ulx_pin(), 0);
  CHECK_EQ(ulx_unpin(), 0);
  return 42;
}

int main(void) {
  CHECK_EQ(pipe(ends), 0);
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.fiber_start = fiber_start;
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.hooks = &hooks;
  options.threads = 1;
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  CHECK(runtime);
  intptr_t result = 0;
  CHECK_EQ(ulx_runtime_run(runtime, body, NULL, &result), 0);
  CHECK_EQ(result, 42);
  CHECK_EQ(starts, 2);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  puts("passed");
  return 0;
}
