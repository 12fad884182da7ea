/* The numbers that a compiled program contains: sizes, places of fields, values. None of version 1 may change, and a
 * struct that carries its size may only grow. The functions are in symbols.txt. As C and as C++. */
#include <ulexite/interop/ulexite.h>

#include <assert.h>
#include <stdio.h>

#define SIZE(type, size) static_assert(sizeof(type) == (size), #type)
#define AT(type, field, place) static_assert(offsetof(type, field) == (place), #type "::" #field)
/* Fields of eight bytes in a row. */
#define ROW(type, place, a, b, c, d) \
  AT(type, a, place);                \
  AT(type, b, (place) + 8);          \
  AT(type, c, (place) + 16);         \
  AT(type, d, (place) + 24)

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
ROW(ulx_hooks, 0, size, user, allocate, release);
ROW(ulx_hooks, 32, thread_start, thread_stop, thread_idle, fiber_start);
AT(ulx_hooks, fiber_end, 64);

SIZE(ulx_runtime_options, 72);
ROW(ulx_runtime_options, 0, size, threads, max_threads, stack_size);
AT(ulx_runtime_options, max_fibers, 32);
AT(ulx_runtime_options, blocking_threads, 40);
AT(ulx_runtime_options, on_deadlock, 48);
AT(ulx_runtime_options, dump_signal, 52);
AT(ulx_runtime_options, hooks, 56);
AT(ulx_runtime_options, trim_stacks_after, 64);

SIZE(ulx_spawn_options, 48);
ROW(ulx_spawn_options, 0, size, name, stack_size, data);
AT(ulx_spawn_options, runtime, 32);
AT(ulx_spawn_options, strand, 40);

SIZE(ulx_deadline, 32);
SIZE(ulx_key, 8);

SIZE(ulx_case, 48);
AT(ulx_case, what, 0);
AT(ulx_case, error, 4);
AT(ulx_case, channel, 8);
AT(ulx_case, element, 16);
AT(ulx_case, fiber, 24);
AT(ulx_case, reserved, 32);

SIZE(ulx_poll, 12);
AT(ulx_poll, fd, 0);
AT(ulx_poll, wanted, 4);
AT(ulx_poll, ready, 8);
SIZE(ulx_block, 128);
SIZE(ulx_job, 16);
AT(ulx_job, next, 0);
AT(ulx_job, run, 8);

SIZE(ulx_fiber_info, 128);
ROW(ulx_fiber_info, 0, size, id, name, state);
ROW(ulx_fiber_info, 32, waits, object, holder, file);
ROW(ulx_fiber_info, 64, line, code, data, low);
ROW(ulx_fiber_info, 96, sp, high, record, record_size);

SIZE(ulx_metrics, 136);
ROW(ulx_metrics, 0, size, workers, workers_sleeping, fibers_live);
ROW(ulx_metrics, 32, fibers_spawned, fibers_ended, dispatches, steals);
ROW(ulx_metrics, 64, parks, wakes, polls, events);
ROW(ulx_metrics, 96, blocking_threads, stacks_refused, workers_retaken, lost_wakeups);
AT(ulx_metrics, stack_bytes_trimmed, 128);

int main(void) {
  /* The library that was linked is of this version. */
  if (ulx_abi_version() != ULX_ABI_VERSION) return 1;
  puts("passed");
  return 0;
}
