/* Mutexes, conditions, groups; descriptors, blocking calls, jobs. */
#include "check.h"

#include <unistd.h>

static ulx_mutex* mutex;
static ulx_condition* condition;
static ulx_group* group;
static int counter;

static void count(void* argument) {
  (void)argument;
  for (int i = 0; i < 100; ++i) {
    CHECK_EQ(ulx_mutex_lock(mutex), 0);
    const int seen = counter;
    if (i % 10 == 0) ulx_yield();
    counter = seen + 1;
    CHECK_EQ(ulx_mutex_unlock(mutex), 0);
  }
  CHECK_EQ(ulx_group_done(group), 0);
}

static void set_flag(void* flag) {
  CHECK_EQ(ulx_mutex_lock(mutex), 0);
  *(bool*)flag = true;
  ulx_condition_broadcast(condition);
  CHECK_EQ(ulx_mutex_unlock(mutex), 0);
}

static void locking(void) {
  CHECK(mutex = ulx_mutex_new());
  CHECK(condition = ulx_condition_new());
  CHECK(group = ulx_group_new());
  counter = 0;
  CHECK_EQ(ulx_group_add(group, 10), 0);
  for (int i = 0; i < 10; ++i) CHECK_EQ(ulx_go(count, NULL, NULL), 0);
  CHECK_EQ(ulx_group_wait(group, ULX_FOREVER), 0);
  CHECK_EQ(counter, 1000);
  CHECK_EQ(ulx_group_done(group), ULX_EUSAGE);
  CHECK_EQ(ulx_group_wait(group, 0), 0);
  CHECK_EQ(ulx_group_add(group, 1), 0);
  CHECK_EQ(ulx_group_wait(group, ulx_now() + MILLISECONDS), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_group_done(group), 0);

  CHECK_EQ(ulx_mutex_lock(mutex), 0);
  CHECK_EQ(ulx_mutex_lock(mutex), ULX_EUSAGE);
  CHECK(!ulx_mutex_try_lock(mutex));
  CHECK_EQ(ulx_condition_wait(condition, mutex, ulx_now() + MILLISECONDS), ULX_ETIMEDOUT);
  bool flag = false;
  CHECK_EQ(ulx_go(set_flag, &flag, NULL), 0);
  while (!flag) CHECK_EQ(ulx_condition_wait(condition, mutex, ULX_FOREVER), 0);
  CHECK_EQ(ulx_mutex_unlock(mutex), 0);
  CHECK_EQ(ulx_mutex_unlock(mutex), ULX_EUSAGE);
  CHECK_EQ(ulx_condition_wait(condition, mutex, 0), ULX_EUSAGE);
  ulx_group_destroy(group);
  ulx_condition_destroy(condition);
  ulx_mutex_destroy(mutex);
}

static intptr_t slow(void* argument) {
  usleep(1000);
  CHECK(!ulx_self());
  return *(int*)argument + 1;
}

static void writes(void* descriptor) {
  ulx_sleep(MILLISECONDS);
  CHECK_EQ(write(*(int*)descriptor, "x", 1), 1);
}

struct counting_job {
  ulx_job job;
  int* runs;
};
static void run_job(ulx_job* job) {
  struct counting_job* const mine = (struct counting_job*)job;
  __atomic_add_fetch(mine->runs, 1, __ATOMIC_RELAXED);
}

static void outside(void) {
  int six = 6;
  intptr_t result = 0;
  CHECK_EQ(ulx_blocking(slow, &six, &result), 0);
  CHECK_EQ(result, 7);
  ulx_fiber* const me = ulx_self();
  CHECK(me);
  ulx_block block;
  ulx_block_enter(&block);
  usleep(1000);
  CHECK_EQ(ulx_join(me, ULX_FOREVER, NULL), ULX_EUSAGE);
  ulx_block_leave(&block);
  CHECK(ulx_self() == me);

  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  unsigned ready = 0;
  CHECK_EQ(ulx_wait_fd(pipes[0], ULX_READ, ulx_now() + MILLISECONDS, &ready), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_wait_fd(pipes[1], ULX_WRITE, ULX_FOREVER, &ready), 0);
  CHECK_EQ(ready, ULX_WRITE);
  CHECK_EQ(ulx_go(writes, &pipes[1], NULL), 0);
  ulx_poll both[] = {{.fd = pipes[0], .wanted = ULX_READ}, {.fd = pipes[1], .wanted = 0}};
  CHECK_EQ(ulx_wait_fds(both, 2, ULX_FOREVER), 0);
  CHECK_EQ(both[0].ready, ULX_READ);
  CHECK_EQ(both[1].ready, 0);
  CHECK_EQ(ulx_wait_fd(pipes[0], 64, ULX_FOREVER, NULL), EINVAL);
  CHECK_EQ(ulx_wait_fd(pipes[0], 0, ULX_FOREVER, NULL), EINVAL);
  close(pipes[0]);
  close(pipes[1]);
  CHECK_EQ(ulx_wait_fd(pipes[0], ULX_READ, ULX_FOREVER, NULL), EBADF);

  int runs = 0;
  struct counting_job jobs[20];
  for (int i = 0; i < 20; ++i) {
    jobs[i] = (struct counting_job){{NULL, run_job}, &runs};
    CHECK_EQ(ulx_schedule(i % 2 ? ulx_runtime_here() : NULL, &jobs[i].job), 0);
  }
  while (__atomic_load_n(&runs, __ATOMIC_RELAXED) < 20) ulx_yield();
  ulx_job none = {NULL, NULL};
  CHECK_EQ(ulx_schedule(NULL, &none), ULX_EUSAGE);
}

static intptr_t body(void* runtime) {
  (void)runtime;
  locking();
  outside();
  return 42;
}

int main(void) {
  run_with_each_width(body);
  puts("passed");
}
