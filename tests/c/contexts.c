/* Strands, pinning, the thread's stack, forbidden waits. */
#include "check.h"

#include <pthread.h>

static ulx_strand* strand;
static int inside, unguarded;

static void enter(void) {
  CHECK_EQ(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST), 1);
  ++unguarded;
  __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static intptr_t child(void* argument) {
  for (int i = 0; i < 20; ++i) {
    enter();
    ulx_yield();
  }
  (void)argument;
  return 0;
}

static intptr_t member(void* argument) {
  (void)argument;
  ulx_fiber* const spawned = ulx_spawn(child, NULL, NULL); /* in the strand too */
  for (int i = 0; i < 20; ++i) {
    enter();
    ulx_sleep(1000);
  }
  CHECK_EQ(ulx_join(spawned, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(spawned);
  return 0;
}

static intptr_t destroys_its_own(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_strand_wait(strand), ULX_EUSAGE);
  CHECK_EQ(ulx_strand_destroy(strand), ULX_EUSAGE);
  CHECK_EQ(ulx_check(), 0); /* it was not asked to stop */
  return 0;
}

static int cancelled;
static intptr_t waits_for_its_end(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_park(ULX_FOREVER), ULX_ECANCELED);
  ulx_yield();
  ++cancelled;
  return 0;
}

/* The destruction of a strand with members waits until they have ended. */
static void end_with_members(void) {
  cancelled = 0;
  ulx_spawn_options there = ULX_INIT(ulx_spawn_options);
  CHECK(there.strand = ulx_strand_new(NULL, "full"));
  ulx_fiber* all[10];
  for (int i = 0; i < 10; ++i) CHECK(all[i] = ulx_spawn(waits_for_its_end, NULL, &there));
  ulx_yield();
  CHECK_EQ(ulx_strand_destroy(there.strand), 0);
  CHECK_EQ(cancelled, 10);
  for (int i = 0; i < 10; ++i) ulx_fiber_release(all[i]);
}

/* A fiber stays in its runtime, and a strand of another runtime gets its own fibers only. */
static void stay_at_home(void) {
  ulx_runtime* const other = ulx_runtime_new(NULL);
  ulx_strand* const elsewhere = ulx_strand_new(other, "elsewhere");
  CHECK(other && elsewhere);
  CHECK_EQ(ulx_migrate_to(elsewhere), ULX_EUSAGE);
  ulx_spawn_options there = ULX_INIT(ulx_spawn_options);
  there.strand = elsewhere;
  ulx_fiber* const spawned = ulx_spawn(child, NULL, &there);
  CHECK_EQ(ulx_join(spawned, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(spawned);
  CHECK_EQ(ulx_strand_destroy(elsewhere), 0);
  CHECK_EQ(ulx_runtime_destroy(other, ULX_DRAIN, NULL), 0);
}

static void strands(void) {
  unguarded = 0;
  CHECK(strand = ulx_strand_new(NULL, "strand"));
  ulx_spawn_options there = ULX_INIT(ulx_spawn_options);
  there.strand = strand;
  ulx_fiber* all[8];
  for (int i = 0; i < 8; ++i) CHECK(all[i] = ulx_spawn(member, NULL, &there));
  for (int i = 0; i < 8; ++i) {
    CHECK_EQ(ulx_join(all[i], ULX_FOREVER, NULL), 0);
    ulx_fiber_release(all[i]);
  }
  CHECK_EQ(ulx_migrate_to(strand), 0);
  enter();
  CHECK_EQ(ulx_migrate_to(NULL), 0);
  CHECK_EQ(ulx_strand_wait(strand), 0);
  CHECK_EQ(unguarded, 8 * 40 + 1);
  ulx_fiber* const own = ulx_spawn(destroys_its_own, NULL, &there);
  CHECK_EQ(ulx_join(own, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(own);
  there.runtime = ulx_runtime_here();
  CHECK(!ulx_spawn(member, NULL, &there));
  CHECK_EQ(errno, EINVAL);
  CHECK_EQ(ulx_strand_destroy(strand), 0);
}

static int depth(int left) {
  volatile char room[1024];
  room[left % 1024] = 1;
  return left == 0 ? 0 : room[left % 1024] + depth(left - 1);
}
static void deep(void* argument) { *(int*)argument = depth(3000); }
static void sleeps(void* argument) { *(int*)argument = ulx_sleep(SECONDS); }

static intptr_t pinned(void* argument) {
  (void)argument;
  CHECK_EQ(ulx_unpin(), ULX_EUSAGE);
  CHECK_EQ(ulx_pin(), 0);
  const pthread_t mine = pthread_self();
  for (int i = 0; i < 50; ++i) {
    if (i % 2) {
      ulx_sleep(1000);
    } else {
      ulx_yield();
    }
    CHECK(pthread_equal(pthread_self(), mine));
  }
  CHECK_EQ(ulx_unpin(), 0);
  return 0;
}

static intptr_t body(void* runtime) {
  (void)runtime;
  strands();
  end_with_members();
  stay_at_home();
  ulx_fiber* all[6];
  for (int i = 0; i < 6; ++i) CHECK(all[i] = ulx_spawn(pinned, NULL, NULL));
  for (int i = 0; i < 6; ++i) {
    CHECK_EQ(ulx_join(all[i], ULX_FOREVER, NULL), 0);
    ulx_fiber_release(all[i]);
  }
  int reached = 0;
  CHECK_EQ(ulx_on_thread_stack(deep, &reached), 0);
  CHECK_EQ(reached, 3000);
  CHECK_EQ(ulx_on_thread_stack(sleeps, &reached), 0);
  CHECK_EQ(reached, ULX_EUSAGE);
  CHECK_EQ(ulx_forbid_waiting(), 0);
  CHECK_EQ(ulx_sleep(SECONDS), ULX_EUSAGE);
  CHECK_EQ(ulx_allow_waiting(), 0);
  CHECK_EQ(ulx_sleep(1000), 0);
  CHECK_EQ(ulx_allow_waiting(), ULX_EUSAGE);
  return 42;
}

int main(void) {
  run_with_each_width(body);
  puts("passed");
}
