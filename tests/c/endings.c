/* Ends of fibers and of runtimes, and what others may rely on then. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

/* ---- a join waits for the values of the fiber's keys */
struct shared {
  int destroyed;
  ulx_fiber* fiber;
};
static ulx_key key;
static void destroy(void* value) {
  struct shared* const shared = value;
  CHECK(ulx_self() == shared->fiber); /* it is still the fiber that calls this */
  ulx_sleep(MILLISECONDS);
  ++shared->destroyed;
}
static intptr_t has_a_value(void* shared) {
  ((struct shared*)shared)->fiber = ulx_self();
  CHECK_EQ(ulx_set(key, shared), 0);
  return 7;
}
static void join_waits_for_values(void) {
  struct shared* const shared = calloc(1, sizeof *shared);
  CHECK(shared);
  ulx_fiber* const fiber = ulx_spawn(has_a_value, shared, NULL);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 7);
  CHECK_EQ(shared->destroyed, 1);
  free(shared); /* a sanitizer would see a later use */
  ulx_fiber_release(fiber);
}

/* ---- a fiber that ends with a mutex is reported, and others go on */
static ulx_mutex* kept;
static intptr_t keeps_a_mutex(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_mutex_lock(kept), 0);
  return 3;
}
static void goes_with_a_mutex(void* mutex) { CHECK_EQ(ulx_mutex_lock(mutex), 0); }
static void mutex_stays_locked(void) {
  static ulx_mutex* all[9]; /* they stay, because they are locked */
  static int used = 0;
  CHECK(kept = all[used++] = ulx_mutex_new());
  ulx_fiber* const fiber = ulx_spawn(keeps_a_mutex, NULL, NULL);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, 3);
  ulx_fiber_release(fiber);
  CHECK(!ulx_mutex_try_lock(kept));
  ulx_mutex* const other = all[used++] = ulx_mutex_new();
  CHECK_EQ(ulx_go(goes_with_a_mutex, other, NULL), 0);
  while (ulx_mutex_try_lock(other)) {
    CHECK_EQ(ulx_mutex_unlock(other), 0);
    ulx_yield();
  }
}

/* ---- a deadline that passes within a later one stays passed */
static void outer_deadline_stays_met(void) {
  ulx_deadline near, far;
  ulx_deadline_push(&near, ulx_now() + MILLISECONDS);
  ulx_deadline_push(&far, ulx_now() + 3600 * SECONDS);
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EDEADLINE);
  ulx_deadline_pop(&far);
  CHECK_EQ(ulx_check(), ULX_EDEADLINE);
  ulx_deadline_pop(&near);
  CHECK_EQ(ulx_check(), 0);
}

/* ---- each deadline in the past ends each call, and none overflows */
static void any_deadline_in_the_past(void) {
  const int64_t past[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1};
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  ulx_channel* const channel = ulx_channel_new(1, 0);
  ulx_group* const group = ulx_group_new();
  ulx_mutex* const mutex = ulx_mutex_new();
  ulx_condition* const condition = ulx_condition_new();
  CHECK(channel && group && mutex && condition);
  CHECK_EQ(ulx_group_add(group, 1), 0);
  CHECK_EQ(ulx_mutex_lock(mutex), 0);
  for (size_t i = 0; i < sizeof past / sizeof *past; ++i) {
    char value = 0;
    size_t chosen;
    unsigned ready;
    ulx_poll one = {.fd = ends[0], .wanted = ULX_READ};
    ulx_case wanted = {.what = ULX_CASE_RECEIVE, .channel = channel, .element = &value};
    CHECK_EQ(ulx_wait_fd(ends[0], ULX_READ, past[i], &ready), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_wait_fd(ends[1], ULX_WRITE, past[i], &ready), 0);
    CHECK_EQ(ulx_wait_fds(&one, 1, past[i]), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_send(channel, &value, past[i]), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_receive(channel, &value, past[i]), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_select(&wanted, 1, past[i], &chosen), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_group_wait(group, past[i]), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_condition_wait(condition, mutex, past[i]), ULX_ETIMEDOUT);
    CHECK_EQ(ulx_sleep_until(past[i]), 0);
    if (ulx_self()) CHECK_EQ(ulx_park(past[i]), ULX_ETIMEDOUT);
    ulx_deadline outer;
    ulx_deadline_push(&outer, past[i]);
    CHECK_EQ(ulx_wait_fd(ends[0], ULX_READ, ULX_FOREVER, NULL), ULX_EDEADLINE);
    CHECK_EQ(ulx_receive(channel, &value, ULX_FOREVER), ULX_EDEADLINE);
    ulx_deadline_pop(&outer);
    wanted.reserved[1] = &value;
    CHECK_EQ(ulx_select(&wanted, 1, past[i], &chosen), EINVAL);
  }
  CHECK_EQ(ulx_mutex_unlock(mutex), 0);
  ulx_condition_destroy(condition);
  ulx_mutex_destroy(mutex);
  ulx_group_destroy(group);
  ulx_channel_destroy(channel);
  close(ends[0]);
  close(ends[1]);
}

/* ---- a fiber destroys another runtime, whose fibers wait for this fiber's worker */
static ulx_channel* answers;
static intptr_t asks(void* argument) {
  (void)argument;
  char value;
  CHECK_EQ(ulx_receive(answers, &value, ULX_FOREVER), 0);
  return value;
}
static void answers_late(void* argument) {
  (void)argument;
  const char value = 9;
  CHECK_EQ(ulx_sleep(MILLISECONDS), 0);
  CHECK_EQ(ulx_send(answers, &value, ULX_FOREVER), 0);
}
static void destroy_in_a_fiber_of_another(void) {
  CHECK(answers = ulx_channel_new(1, 0));
  ulx_runtime* const other = ulx_runtime_new(NULL);
  CHECK(other);
  ulx_spawn_options there = ULX_INIT(ulx_spawn_options);
  there.runtime = other;
  ulx_fiber* const fiber = ulx_spawn(asks, NULL, &there);
  CHECK(fiber);
  CHECK_EQ(ulx_go(answers_late, NULL, NULL), 0);
  CHECK_EQ(ulx_runtime_destroy(other, ULX_DRAIN, NULL), 0);
  intptr_t result = 0;
  CHECK_EQ(ulx_join(fiber, 0, &result), 0); /* a handle outlives the runtime */
  CHECK_EQ(result, 9);
  ulx_fiber_release(fiber);
  ulx_channel_destroy(answers);
}

static intptr_t body(void* argument) {
  (void)argument;
  join_waits_for_values();
  mutex_stays_locked();
  outer_deadline_stays_met();
  any_deadline_in_the_past();
  destroy_in_a_fiber_of_another();
  return 42;
}

/* ---- another thread cannot destroy a runtime that runs */
static void* destroys(void* runtime) {
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_CANCEL, NULL), ULX_EUSAGE);
  return NULL;
}
static intptr_t join_thread(void* thread) { return pthread_join(*(pthread_t*)thread, NULL); }
static intptr_t is_destroyed_meanwhile(void* runtime) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, destroys, runtime), 0);
  intptr_t error = 1;
  CHECK_EQ(ulx_blocking(join_thread, &thread, &error), 0);
  CHECK_EQ(error, 0);
  return 42;
}

/* ---- the main fiber ends with a mutex */
static intptr_t main_keeps_a_mutex(void* mutex) { return ulx_mutex_lock(mutex); }

int main(void) {
  CHECK(key = ulx_key_new(destroy));
  CHECK(!ulx_get(0));
  CHECK_EQ(errno, EINVAL);
  run_with_each_width(body);
  run_with_each_width(is_destroyed_meanwhile);
  outer_deadline_stays_met();
  any_deadline_in_the_past();
  ulx_runtime* const runtime = ulx_runtime_new(NULL);
  static ulx_mutex* stays;
  CHECK(runtime && (stays = ulx_mutex_new()));
  CHECK_EQ(ulx_runtime_run(runtime, main_keeps_a_mutex, stays, NULL), ULX_EUSAGE);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  puts("passed");
}
