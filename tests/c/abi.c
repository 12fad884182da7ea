/* The numbers that a compiled program contains: sizes, places of fields, values. None of version 1 may change, and a
 * struct that carries its size may only grow. The functions are in symbols.txt. As C and as C++. */
#include <ulexite/interop/ulexite.h>

#include <assert.h>
#include <stdio.h>

#define SIZE(type, size) static_assert(sizeof(type) == (size), #type)
#define AT(type, field, place) static_assert(offsetof(type, field) == (place), #type "::" #field)

static_assert(ULX_ABI_VERSION == 1, "a new version gets tables of its own");
static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8, "the numbers below");
static_assert(ULX_FOREVER == 9223372036854775807 && ULX_UNBOUNDED == 18446744073709551615u, "");

static_assert(ULX_ECANCELED == 4001 && ULX_EDEADLINE == 4002 && ULX_ECLOSED == 4003 && ULX_ETIMEDOUT == 4004, "");
static_assert(ULX_EWOULDBLOCK == 4005 && ULX_EUSAGE == 4006 && ULX_ELIMIT == 4007 && ULX_EDEADLOCK == 4008, "");
static_assert(ULX_DEADLOCK_REPORT == 0 && ULX_DEADLOCK_FAIL == 1 && ULX_DEADLOCK_IGNORE == 2, "");
static_assert(ULX_DRAIN == 0 && ULX_CANCEL == 1 && ULX_STOP == 2, "");
static_assert(ULX_CASE_OFF == 0 && ULX_CASE_SEND == 1 && ULX_CASE_RECEIVE == 2 && ULX_CASE_JOIN == 3, "");
static_assert(ULX_READ == 1 && ULX_WRITE == 2, "");
static_assert(ULX_FRESH == 0 && ULX_RUNNABLE == 1 && ULX_RUNNING == 2 && ULX_WAITING == 3, "");

SIZE(ulx_hooks, 72);
AT(ulx_hooks, size, 0);
AT(ulx_hooks, user, 8);
AT(ulx_hooks, allocate, 16);
AT(ulx_hooks, release, 24);
AT(ulx_hooks, thread_start, 32);
AT(ulx_hooks, thread_stop, 40);
AT(ulx_hooks, thread_idle, 48);
AT(ulx_hooks, fiber_start, 56);
AT(ulx_hooks, fiber_end, 64);

SIZE(ulx_runtime_options, 72);
AT(ulx_runtime_options, size, 0);
AT(ulx_runtime_options, threads, 8);
AT(ulx_runtime_options, max_threads, 16);
AT(ulx_runtime_options, stack_size, 24);
AT(ulx_runtime_options, max_fibers, 32);
AT(ulx_runtime_options, blocking_threads, 40);
AT(ulx_runtime_options, on_deadlock, 48);
AT(ulx_runtime_options, dump_signal, 52);
AT(ulx_runtime_options, hooks, 56);
AT(ulx_runtime_options, trim_stacks_after, 64);

SIZE(ulx_spawn_options, 48);
AT(ulx_spawn_options, size, 0);
AT(ulx_spawn_options, name, 8);
AT(ulx_spawn_options, stack_size, 16);
AT(ulx_spawn_options, data, 24);
AT(ulx_spawn_options, runtime, 32);
AT(ulx_spawn_options, strand, 40);

SIZE(ulx_deadline, 16);
AT(ulx_deadline, outer, 0);
AT(ulx_deadline, expired, 8);
SIZE(ulx_key, 8);

SIZE(ulx_case, 32);
AT(ulx_case, what, 0);
AT(ulx_case, error, 4);
AT(ulx_case, channel, 8);
AT(ulx_case, element, 16);
AT(ulx_case, fiber, 24);

SIZE(ulx_poll, 12);
AT(ulx_poll, fd, 0);
AT(ulx_poll, wanted, 4);
AT(ulx_poll, ready, 8);
SIZE(ulx_block, 64);
SIZE(ulx_job, 16);
AT(ulx_job, next, 0);
AT(ulx_job, run, 8);

SIZE(ulx_fiber_info, 128);
AT(ulx_fiber_info, size, 0);
AT(ulx_fiber_info, id, 8);
AT(ulx_fiber_info, name, 16);
AT(ulx_fiber_info, state, 24);
AT(ulx_fiber_info, waits, 32);
AT(ulx_fiber_info, object, 40);
AT(ulx_fiber_info, holder, 48);
AT(ulx_fiber_info, file, 56);
AT(ulx_fiber_info, line, 64);
AT(ulx_fiber_info, code, 72);
AT(ulx_fiber_info, data, 80);
AT(ulx_fiber_info, low, 88);
AT(ulx_fiber_info, sp, 96);
AT(ulx_fiber_info, high, 104);
AT(ulx_fiber_info, record, 112);
AT(ulx_fiber_info, record_size, 120);

SIZE(ulx_metrics, 136);
AT(ulx_metrics, size, 0);
AT(ulx_metrics, workers, 8);
AT(ulx_metrics, workers_sleeping, 16);
AT(ulx_metrics, fibers_live, 24);
AT(ulx_metrics, fibers_spawned, 32);
AT(ulx_metrics, fibers_ended, 40);
AT(ulx_metrics, dispatches, 48);
AT(ulx_metrics, steals, 56);
AT(ulx_metrics, parks, 64);
AT(ulx_metrics, wakes, 72);
AT(ulx_metrics, polls, 80);
AT(ulx_metrics, events, 88);
AT(ulx_metrics, blocking_threads, 96);
AT(ulx_metrics, stacks_refused, 104);
AT(ulx_metrics, hogs_relieved, 112);
AT(ulx_metrics, rescued_wakeups, 120);
AT(ulx_metrics, stack_bytes_trimmed, 128);

int main(void) {
  /* The library that was linked is of this version. */
  if (ulx_abi_version() != ULX_ABI_VERSION) return 1;
  puts("passed");
  return 0;
}
