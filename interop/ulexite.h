/* The C interface of Ulexite: C11, and C++. Link the library as for C++ (pkg-config --libs ulexite, and libstdc++ if
 * the linker is not g++). docs/embedding.md is a guide.
 *
 * Rules for all of it
 *   - Nothing throws. A function that can fail returns 0 or an error: an errno value or one of ULX_E... If it returns a
 *     pointer, it returns NULL instead, with the error in errno. Wrong use also prints a message on stderr. Each
 *     function may return errors that it does not list.
 *   - A pointer may be NULL only where it says so.
 *   - Options, hooks and metrics begin with their size, which ULX_INIT sets. Later versions only append fields, and
 *     0 is the default of each. A size of 0, and non-zero fields that this library does not know, are EINVAL. Fields
 *     that are called reserved must be 0.
 *   - A time is a number of nanoseconds; a deadline is a time of ulx_now(). ULX_FOREVER is no limit. With a deadline in
 *     the past a call does as much as it can without waiting; but it counts as a wait where a caller must not wait, and
 *     only the try functions do not.
 *   - "Waits" means that a fiber leaves its worker to other fibers; a plain thread blocks. Hooks, visits and jobs must
 *     not wait. A fiber's wait in a hook of memory or of fibers, or in a stopped world, returns ULX_EUSAGE. One in a
 *     job or in thread_idle ends the process, with a message. A plain thread that waits in a stopped world may do so
 *     for ever. Other callbacks may wait.
 *   - A callback must not leave by longjmp or an exception. setjmp and longjmp within one fiber's own calls are fine.
 *   - A fiber that was asked to stop gets ULX_ECANCELED from each wait that lists it, and no stack is unwound. After
 *     its deadline (ulx_deadline_push) it gets ULX_EDEADLINE from the same waits.
 *   - Every function may be called by any thread, unless it says otherwise. None may be called in a signal handler but
 *     ulx_stack_around; ulexite::signal_check finds those that may do harm.
 */
#ifndef ULEXITE_H
#define ULEXITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
namespace ulexite { /* C++11 has no shorter form */
namespace detail {
template <class T>
T with_its_size() noexcept {
  T made{};
  made.size = sizeof made;
  return made;
}
}  // namespace detail
}  // namespace ulexite
extern "C" {
#define ULX_NOEXCEPT noexcept
#define ULX_INIT(type) (::ulexite::detail::with_its_size<type>())
#else
#define ULX_NOEXCEPT
#define ULX_INIT(type) ((type){.size = sizeof(type)})
#endif
#define ULX_API __attribute__((visibility("default")))

/* The version of the interface in this header. Within one version, functions, fields and values of the enumerations are
 * only added. So take an unknown error for a failure, and an unknown state for ULX_RUNNING. */
#define ULX_ABI_VERSION 1
/* The version of the library's interface. A program should compare both at its start. */
ULX_API uint32_t ulx_abi_version(void) ULX_NOEXCEPT;
/* The version of the library, "0.1.0". */
ULX_API const char* ulx_version(void) ULX_NOEXCEPT;

#define ULX_FOREVER INT64_MAX

/* Errors in addition to those of errno. */
enum {
  ULX_ECANCELED = 4001, /* the fiber was asked to stop */
  ULX_EDEADLINE,        /* the fiber's deadline (ulx_deadline_push) has passed */
  ULX_ECLOSED,          /* the channel is closed and, for a receive, drained */
  ULX_ETIMEDOUT,        /* the deadline of this call has passed */
  ULX_EWOULDBLOCK,      /* a try function would have had to wait */
  ULX_EUSAGE,           /* a call that breaks a rule; the message is on stderr */
  ULX_ELIMIT,           /* max_fibers */
  ULX_EDEADLOCK         /* nothing can ever run again (ULX_DEADLOCK_FAIL) */
};
/* The text of an error, also of errno's values. The text is static. */
ULX_API const char* ulx_strerror(int error) ULX_NOEXCEPT;
/* Nanoseconds of the monotonic clock. */
ULX_API int64_t ulx_now(void) ULX_NOEXCEPT;

typedef struct ulx_runtime ulx_runtime; /* workers, and the fibers on them */
typedef struct ulx_strand ulx_strand;   /* fibers that never run at the same time */
typedef struct ulx_fiber ulx_fiber;     /* a fiber's handle, counted */
typedef struct ulx_channel ulx_channel; /* passes elements of one size */
typedef struct ulx_mutex ulx_mutex;
typedef struct ulx_condition ulx_condition; /* a condition variable */
typedef struct ulx_group ulx_group;         /* counts work under way */

/* --------------------------------------------------------------------------------------------------------------- hooks
 * For collectors and the like. All are NULL by default, and then cost nothing. Each is called on the thread concerned.
 * */
typedef struct {
  size_t size;
  void* user; /* the first argument of each */

  /* Memory that may hold the embedder's pointers: for channels, handles, results, fibers' values of keys. NULL: malloc
   * and free. A collector should return memory that it scans and does not collect. They hold for the whole process: the
   * first runtime that has them sets them; make it before other threads use this interface. EINVAL refuses a runtime
   * that has others, has only one of them, or has the first while objects with memory of malloc exist. `allocate`
   * aligns as malloc, and may return NULL. Any thread may call `release`. A channel may be locked meanwhile, so they
   * may neither use a channel nor stop the world, and nor may finalizers that a collector runs in them. */
  void* (*allocate)(void* user, size_t bytes);
  void (*release)(void* user, void* memory);

  /* Called once at the start and once at the end of each thread that runs fibers or calls of ulx_blocking. `worker`: it
   * was started to run fibers. A thread of ulx_blocking may run fibers later (ulx_block_enter). */
  void (*thread_start)(void* user, bool worker);
  void (*thread_stop)(void* user, bool worker);
  /* Called when a worker has nothing to do. It must call sleep(data) exactly once, which returns when there is work.
   * It may call it through a function of a collector that does not have to stop this thread. */
  void (*thread_idle)(void* user, void (*sleep)(void*), void* data);

  /* Called on the fiber's own stack, before and after its function. `data` is ulx_spawn_options.data, or the value that
   * the fiber has set since. For fibers of ulx_spawn, ulx_go and ulx_runtime_run. */
  void (*fiber_start)(void* user, uint64_t id, void* data);
  void (*fiber_end)(void* user, uint64_t id, void* data);
} ulx_hooks;

/* ---------------------------------------------------------------------------------------------------------- runtime */
/* What follows when all fibers wait, and nothing can wake one. REPORT: a report on stderr; they wait on. FAIL: the
 * report; every fiber is asked to stop, and ulx_runtime_run returns ULX_EDEADLOCK, as each later call. IGNORE: nothing.
 */
enum { ULX_DEADLOCK_REPORT = 0, ULX_DEADLOCK_FAIL, ULX_DEADLOCK_IGNORE };

typedef struct {
  size_t size;
  size_t threads;          /* largest number of workers; 0: ULEXITE_THREADS, or the processors */
  size_t max_threads;      /* largest number for ulx_runtime_resize; 0: as threads */
  size_t stack_size;       /* bytes of a fiber's stack, address space until it is touched; 0: 256 KiB */
  size_t max_fibers;       /* 0: limited by memory */
  size_t blocking_threads; /* largest number of threads behind ulx_blocking; 0: 64 */
  int on_deadlock;         /* ULX_DEADLOCK_... */
  int dump_signal;         /* at this signal the runtime writes a dump to stderr; 0: none */
  const ulx_hooks* hooks;  /* copied; NULL: none */
  /* A fiber that has waited for so many nanoseconds gives the memory of its stack below `sp` back. 0: a minute;
   * negative: never. */
  int64_t trim_stacks_after;
} ulx_runtime_options;

/* Makes a runtime. `options` may be NULL. errno: EINVAL, EAGAIN, ENOMEM, and others of the system's. */
ULX_API ulx_runtime* ulx_runtime_new(const ulx_runtime_options* options) ULX_NOEXCEPT;
/* Runs main(data) as a fiber and waits for its end. Its result goes to *result; `result` may be NULL. One call at a
 * time; not from a fiber of this runtime, and not without `main`: ULX_EUSAGE. ULX_EDEADLOCK: see on_deadlock. */
ULX_API int ulx_runtime_run(ulx_runtime* runtime, intptr_t (*main)(void* data), void* data,
                            intptr_t* result) ULX_NOEXCEPT;
/* Asks every fiber to stop, also later ones. Never waits. */
ULX_API void ulx_runtime_request_stop(ulx_runtime* runtime) ULX_NOEXCEPT;
/* Changes the largest number of workers, from 1 to max_threads; otherwise EINVAL. No fiber is lost. Never waits. */
ULX_API int ulx_runtime_resize(ulx_runtime* runtime, size_t threads) ULX_NOEXCEPT;

enum { ULX_DRAIN = 0, ULX_CANCEL, ULX_STOP };
/* Ends the runtime and frees it. NULL: no effect. ULX_DRAIN waits until all fibers have ended. ULX_CANCEL asks them to
 * stop first.
 * ULX_STOP abandons them, and the jobs of ulx_schedule that have not begun; the number of fibers goes to *abandoned, if
 * that is not NULL. In a fiber of this runtime or a call of its ulx_blocking, and during ulx_runtime_run: ULX_EUSAGE,
 * and the runtime continues; also where waiting is forbidden. A fiber of another runtime blocks its worker if it is
 * pinned or in a strand. To end that from outside, use ulx_runtime_request_stop. Handles of fibers stay valid;
 * strands must be destroyed before. */
ULX_API int ulx_runtime_destroy(ulx_runtime* runtime, int how, size_t* abandoned) ULX_NOEXCEPT;
/* The runtime of the calling fiber; NULL on a plain thread, and in a runtime that C++ has made. */
ULX_API ulx_runtime* ulx_runtime_here(void) ULX_NOEXCEPT;

/* ----------------------------------------------------------------------------------------------------------- fibers */
typedef struct {
  size_t size;
  const char* name;     /* copied; NULL: none */
  size_t stack_size;    /* 0: the runtime's */
  void* data;           /* ulx_data() in the fiber */
  ulx_runtime* runtime; /* NULL: the caller's */
  ulx_strand* strand;   /* NULL: the caller's, unless `runtime` names another than the caller's. Not with `runtime` */
} ulx_spawn_options;

/* Starts a fiber that calls function(argument). Never waits. Returns a handle, which the caller must release. `options`
 * may be NULL. errno: ULX_EUSAGE (a plain thread, and neither runtime nor strand; a function that is NULL), ULX_ELIMIT,
 * ENOMEM, EINVAL. */
ULX_API ulx_fiber* ulx_spawn(intptr_t (*function)(void* argument), void* argument,
                             const ulx_spawn_options* options) ULX_NOEXCEPT;
/* Starts a fiber without a handle. It is cheaper: it allocates nothing unless the options have data. */
ULX_API int ulx_go(void (*function)(void* argument), void* argument, const ulx_spawn_options* options) ULX_NOEXCEPT;
/* Waits for the end of a fiber. Its function's result goes to *result; `result` may be NULL. Any number of callers, any
 * number of times. The values of its keys are destroyed then. ULX_ETIMEDOUT, ULX_ECANCELED, ULX_EUSAGE (called by the
 * fiber itself). Only ULX_STOP keeps a fiber from its end or its beginning; it then has the result 0. */
ULX_API int ulx_join(ulx_fiber* fiber, int64_t deadline, intptr_t* result) ULX_NOEXCEPT;
/* Whether the fiber has ended. Never waits. */
ULX_API bool ulx_done(const ulx_fiber* fiber) ULX_NOEXCEPT;
/* Increments the handle's count, and returns the handle. */
ULX_API ulx_fiber* ulx_fiber_retain(ulx_fiber* fiber) ULX_NOEXCEPT;
/* Decrements the handle's count. The fiber continues. NULL: no effect. */
ULX_API void ulx_fiber_release(ulx_fiber* fiber) ULX_NOEXCEPT;
/* The fiber's number, unique in the process. */
ULX_API uint64_t ulx_fiber_id(const ulx_fiber* fiber) ULX_NOEXCEPT;

/* The calling fiber's handle, not counted; NULL on a plain thread and in a fiber of ulx_go. */
ULX_API ulx_fiber* ulx_self(void) ULX_NOEXCEPT;
/* The calling fiber's number; 0 on a plain thread. */
ULX_API uint64_t ulx_id(void) ULX_NOEXCEPT;
/* A pointer for each fiber. On a plain thread the first returns NULL, the second ULX_EUSAGE. */
ULX_API void* ulx_data(void) ULX_NOEXCEPT;
ULX_API int ulx_set_data(void* data) ULX_NOEXCEPT;
/* Names the calling fiber, for reports; the name is copied. ULX_EUSAGE on a plain thread, ENOMEM. */
ULX_API int ulx_set_name(const char* name) ULX_NOEXCEPT;
/* The bounds of the calling fiber's stack; false on a plain thread. For interpreters that check their depth. In
 * ulx_on_thread_stack the caller's frames are not within them. */
ULX_API bool ulx_stack_bounds(const void** low, const void** high) ULX_NOEXCEPT;

/* Lets other fibers of this worker run first. */
ULX_API void ulx_yield(void) ULX_NOEXCEPT;
/* Wait for a time, or until a deadline. */
ULX_API int ulx_sleep(int64_t nanoseconds) ULX_NOEXCEPT;    /* ULX_ECANCELED */
ULX_API int ulx_sleep_until(int64_t deadline) ULX_NOEXCEPT; /* ULX_ECANCELED */
/* Yields if other fibers have waited for this worker for long, or the world must stop. Otherwise it costs a nanosecond.
 * For loops that compute, and for the hook of an interpreter. */
ULX_API void ulx_safepoint(void) ULX_NOEXCEPT;

/* Each fiber has at most one permit: unpark sets it; park takes it, or waits for it. ULX_ETIMEDOUT, ULX_ECANCELED,
 * ULX_EUSAGE without a handle (ulx_self). */
ULX_API int ulx_park(int64_t deadline) ULX_NOEXCEPT;
ULX_API void ulx_unpark(ulx_fiber* fiber) ULX_NOEXCEPT;

/* Asks a fiber to stop: its present or next wait and each later one return ULX_ECANCELED. True the first time. */
ULX_API bool ulx_cancel(ulx_fiber* fiber) ULX_NOEXCEPT;
/* A cancellation point without a wait. Returns 0, ULX_ECANCELED or ULX_EDEADLINE. */
ULX_API int ulx_check(void) ULX_NOEXCEPT;
/* While on, the calling fiber ignores requests to stop, and deadlines that were pushed before. Fibers that it spawns
 * then have no deadline. Returns the previous setting; the same setting again changes nothing, so a second shield does
 * not put later deadlines aside. Shields and deadlines end in reverse order. If there is no memory, the deadline still
 * counts. */
ULX_API bool ulx_shield(bool on) ULX_NOEXCEPT;
/* A deadline for the caller until the pop, and for fibers that it spawns before the pop: their waits return
 * ULX_EDEADLINE. A nested deadline can only be nearer. The fiber that pushed pops, in reverse order. */
typedef struct {
  void* opaque[4];
} ulx_deadline;
ULX_API void ulx_deadline_push(ulx_deadline* outer, int64_t deadline) ULX_NOEXCEPT;
ULX_API void ulx_deadline_pop(const ulx_deadline* outer) ULX_NOEXCEPT;

/* A value for each fiber and plain thread, NULL at first. `destroy`, if not NULL, is called with each value that is not
 * NULL: by its fiber, after fiber_end, or by its thread at the end, after thread_stop. After ULX_STOP the caller of
 * ulx_runtime_destroy calls it. It may wait. Keys are never freed. 0: no memory. A collector finds a fiber's values in
 * memory of the hook `allocate`. It does not find those of plain threads. EINVAL for a key of 0, ENOMEM, ULX_EUSAGE in
 * a job: ulx_set returns them; ulx_get sets errno and returns NULL. */
typedef uintptr_t ulx_key;
ULX_API ulx_key ulx_key_new(void (*destroy)(void* value)) ULX_NOEXCEPT;
ULX_API void* ulx_get(ulx_key key) ULX_NOEXCEPT;
ULX_API int ulx_set(ulx_key key, void* value) ULX_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------------- contexts */
/* Makes a strand over a runtime, or the caller's if NULL. Its fibers never run at the same time, so data that only they
 * share needs no lock. One interpreter with a global lock is a strand. Fibers that its fibers spawn belong to it. The
 * name may be NULL. errno: ULX_EUSAGE (a plain thread without a runtime), ENOMEM. */
ULX_API ulx_strand* ulx_strand_new(ulx_runtime* runtime, const char* name) ULX_NOEXCEPT;
/* Asks its fibers to stop, waits until all have ended, and frees the strand. NULL: no effect. ULX_EUSAGE in one of its
 * own fibers, while another caller waits for its fibers, and where waiting is forbidden: then nothing has changed. */
ULX_API int ulx_strand_destroy(ulx_strand* strand) ULX_NOEXCEPT;
/* Waits until it has no fiber. ULX_EUSAGE if another caller waits already. */
ULX_API int ulx_strand_wait(ulx_strand* strand) ULX_NOEXCEPT;
/* Moves the calling fiber into a strand of its own runtime, or out of its strand if NULL. It may wait.
 * ULX_EUSAGE: a plain thread, a strand of another runtime, and where waiting is forbidden. */
ULX_API int ulx_migrate_to(ulx_strand* strand) ULX_NOEXCEPT;

/* Keeps the calling fiber on its thread until as many calls of unpin. ULX_EUSAGE where waiting is forbidden. This and
 * the next have no effect on a plain thread. */
ULX_API int ulx_pin(void) ULX_NOEXCEPT;
ULX_API int ulx_unpin(void) ULX_NOEXCEPT;
/* Until as many calls of allow, a call that would have to wait returns ULX_EUSAGE. */
ULX_API int ulx_forbid_waiting(void) ULX_NOEXCEPT;
ULX_API int ulx_allow_waiting(void) ULX_NOEXCEPT;
/* Calls function(argument) on the stack of the worker's thread, for deep recursion. It must not wait. Its frames are in
 * no ulx_fiber_info, so a collector that runs within it must scan the thread's stack itself. ULX_EUSAGE: a function
 * that is NULL. */
ULX_API int ulx_on_thread_stack(void (*function)(void* argument), void* argument) ULX_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------------- channels */
#define ULX_UNBOUNDED SIZE_MAX
/* Makes a channel of elements of element_size bytes, which are copied. Its buffer has room for `capacity` elements; 0:
 * a send waits for its receive. errno: ENOMEM. */
ULX_API ulx_channel* ulx_channel_new(size_t element_size, size_t capacity) ULX_NOEXCEPT;
/* Frees a channel. Every call on it must have returned. */
ULX_API void ulx_channel_destroy(ulx_channel* channel) ULX_NOEXCEPT;
/* Send or receive an element, and wait until it is possible. ULX_ECLOSED, ULX_ETIMEDOUT, ULX_ECANCELED. */
ULX_API int ulx_send(ulx_channel* channel, const void* element, int64_t deadline) ULX_NOEXCEPT;
ULX_API int ulx_receive(ulx_channel* channel, void* element, int64_t deadline) ULX_NOEXCEPT;
/* Send or receive an element without waiting. ULX_EWOULDBLOCK, ULX_ECLOSED, ULX_ECANCELED. A fiber that calls the
 * second very often lets others run from time to time, as by ulx_yield, and may change its thread then. */
ULX_API int ulx_try_send(ulx_channel* channel, const void* element) ULX_NOEXCEPT;
ULX_API int ulx_try_receive(ulx_channel* channel, void* element) ULX_NOEXCEPT;
/* Closes the channel. Elements in it can still be received. Returns true the first time. */
ULX_API bool ulx_close(ulx_channel* channel) ULX_NOEXCEPT;
/* The number of elements in the buffer. Never waits. */
ULX_API size_t ulx_channel_length(const ulx_channel* channel) ULX_NOEXCEPT;

enum { ULX_CASE_OFF = 0, ULX_CASE_SEND, ULX_CASE_RECEIVE, ULX_CASE_JOIN };
typedef struct {
  int what;             /* ULX_CASE_... */
  int error;            /* out, of the chosen case: 0 or ULX_ECLOSED */
  ulx_channel* channel; /* of a send or receive */
  void* element;        /* the source or the destination; may be NULL for a receive */
  ulx_fiber* fiber;     /* of a join */
  void* reserved[2];    /* 0 */
} ulx_case;
/* Waits until a case is ready, and takes it: *chosen is its index. Of several ready cases it takes one at random.
 * ULX_ETIMEDOUT; with a deadline of 0 or less it does not count as a wait, and yields as ulx_try_receive does.
 * ULX_ECANCELED. ULX_EUSAGE for no case and ULX_FOREVER. EINVAL for an unknown kind, and for a reserved field that is
 * not 0. */
ULX_API int ulx_select(ulx_case* cases, size_t count, int64_t deadline, size_t* chosen) ULX_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------------ locks */
/* Makes a mutex. errno: ENOMEM. A destroy may get NULL. No caller may hold or use what it destroys. */
ULX_API ulx_mutex* ulx_mutex_new(void) ULX_NOEXCEPT;
ULX_API void ulx_mutex_destroy(ulx_mutex* mutex) ULX_NOEXCEPT;
/* Waits for the mutex. Not a cancellation point. ULX_EUSAGE if the caller holds it already. The mutex of a fiber that
 * ends while it holds it stays locked; a message on stderr says so, and ulx_runtime_run returns ULX_EUSAGE if it was
 * its fiber. */
ULX_API int ulx_mutex_lock(ulx_mutex* mutex) ULX_NOEXCEPT;
/* Takes the mutex if it is free. Never waits. False if the caller holds it already. */
ULX_API bool ulx_mutex_try_lock(ulx_mutex* mutex) ULX_NOEXCEPT;
/* ULX_EUSAGE if the caller does not hold it. */
ULX_API int ulx_mutex_unlock(ulx_mutex* mutex) ULX_NOEXCEPT;
/* Makes a condition variable. errno: ENOMEM. */
ULX_API ulx_condition* ulx_condition_new(void) ULX_NOEXCEPT;
ULX_API void ulx_condition_destroy(ulx_condition* condition) ULX_NOEXCEPT;
/* Releases the mutex and waits for a signal. At the return the mutex is held again, also on an error: ULX_ETIMEDOUT,
 * ULX_ECANCELED, ULX_EUSAGE. */
ULX_API int ulx_condition_wait(ulx_condition* condition, ulx_mutex* mutex, int64_t deadline) ULX_NOEXCEPT;
/* Wake one waiter, or all. Never wait. */
ULX_API void ulx_condition_signal(ulx_condition* condition) ULX_NOEXCEPT;
ULX_API void ulx_condition_broadcast(ulx_condition* condition) ULX_NOEXCEPT;
/* Makes a group with a count of 0. errno: ENOMEM. */
ULX_API ulx_group* ulx_group_new(void) ULX_NOEXCEPT;
ULX_API void ulx_group_destroy(ulx_group* group) ULX_NOEXCEPT;
/* Changes the count. Below zero: ULX_EUSAGE, and the count is unchanged. */
ULX_API int ulx_group_add(ulx_group* group, ptrdiff_t count) ULX_NOEXCEPT;
ULX_API int ulx_group_done(ulx_group* group) ULX_NOEXCEPT;
/* Waits until the count is 0. ULX_ETIMEDOUT, ULX_ECANCELED. */
ULX_API int ulx_group_wait(ulx_group* group, int64_t deadline) ULX_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------ the world outside */
enum { ULX_READ = 1, ULX_WRITE = 2 };
typedef struct {
  int fd;
  unsigned wanted; /* ULX_READ, ULX_WRITE or both; 0: not watched */
  unsigned ready;  /* out, if 0 or ULX_ETIMEDOUT is returned: a part of `wanted`; all of it after an error or hang-up */
} ulx_poll;
/* Waits until one of the descriptors is ready, and marks all ready ones. They should be non-blocking, must not be
 * closed during the wait, and are not kept. ULX_ETIMEDOUT, ULX_ECANCELED, errno's values. EINVAL: an unknown
 * direction. */
ULX_API int ulx_wait_fds(ulx_poll* descriptors, size_t count, int64_t deadline) ULX_NOEXCEPT;
/* Waits for one descriptor. Its ready directions go to *ready as above; `ready` may be NULL. EINVAL: no direction. */
ULX_API int ulx_wait_fd(int fd, unsigned wanted, int64_t deadline, unsigned* ready) ULX_NOEXCEPT;
/* Calls function(argument) on a thread that may block; the fiber waits for its end. ULX_ECANCELED before it begins.
 * ULX_EUSAGE: a function that is NULL. */
ULX_API int ulx_blocking(intptr_t (*function)(void* argument), void* argument, intptr_t* result) ULX_NOEXCEPT;
/* Between enter and leave the caller's thread is a plain thread that may block, on the fiber's stack. Another thread
 * works in its place. A fiber of a strand, or a pinned fiber, keeps the worker. Call both in one function. For a
 * collector the fiber counts as running. Between them ulx_self and ulx_data may return NULL. After leave the fiber may
 * be on another thread. */
typedef struct {
  void* opaque[16];
} ulx_block;
ULX_API void ulx_block_enter(ulx_block* block) ULX_NOEXCEPT;
ULX_API void ulx_block_leave(ulx_block* block) ULX_NOEXCEPT;

/* Work without its own stack: a worker calls run(job) once. It must not wait. The caller owns the memory, which must
 * stay valid until run is entered, or the runtime is destroyed. */
typedef struct ulx_job {
  struct ulx_job* next; /* for the library, while the job is queued */
  void (*run)(struct ulx_job* job);
} ulx_job;
/* Makes a job runnable in a runtime, or the caller's if NULL. ULX_EUSAGE on a plain thread, or without a run. */
ULX_API int ulx_schedule(ulx_runtime* runtime, ulx_job* job) ULX_NOEXCEPT;

/* ---------------------------------------------------------------------------------------------------- seeing inside */
enum { ULX_FRESH = 0, ULX_RUNNABLE, ULX_RUNNING, ULX_WAITING };
typedef struct {
  size_t size;        /* set by the library: fields behind it are not there */
  uint64_t id;        /* 0: it is being spawned, and only its record is valid */
  const char* name;   /* cut to 31 bytes; "" if none. Valid during the visit */
  int state;          /* ULX_FRESH ... */
  const char* waits;  /* in words: "to receive from channel"; NULL: it does not wait */
  const void* object; /* the object at which it waits; NULL: unknown */
  uint64_t holder;    /* in a stopped world: holds the mutex, or is joined; 0: unknown */
  const char* file;   /* of the spawn; NULL: unknown, see `code` */
  uint32_t line;
  const void* code; /* the address that spawned it */
  void* data;       /* ulx_data() */
  /* The part of its stack that a collector must scan: [sp, high). All NULL: it has none yet. sp alone NULL: it runs.
   * Then scan from the stack pointer of the thread that is between low and high. In a stopped world this is the
   * visitor's own thread, or one between ulx_block_enter and ulx_block_leave, which runs on. If no thread is there, the
   * fiber was just being switched: scan all of [low, high). */
  const void* low;
  const void* sp;
  const void* high;
  const void* record; /* its function's argument and the like */
  size_t record_size;
} ulx_fiber_info;

/* Calls visit(user, info) for every fiber. It takes no lock, allocates nothing and makes no system call. So a
 * collector may call it while it has stopped all threads at any point. Exact while nothing runs; otherwise only id,
 * state and place are reliable. */
ULX_API void ulx_for_each_fiber(ulx_runtime* runtime, void (*visit)(void* user, const ulx_fiber_info* fiber),
                                void* user) ULX_NOEXCEPT;
/* The bounds of the fiber's stack that contains `address`. False if there is none. Also in signal handlers. */
ULX_API bool ulx_stack_around(const void* address, const void** low, const void** high) ULX_NOEXCEPT;
/* Writes the return addresses of a fiber that does not run, innermost first. Returns their number. During a visit of a
 * stopped world. */
ULX_API size_t ulx_backtrace(const ulx_fiber_info* fiber, void** addresses, size_t most) ULX_NOEXCEPT;

/* Stops every worker except the caller's between two fibers. ULX_ETIMEDOUT after `patience` nanoseconds, and then
 * nothing is stopped; late(user, fiber), if not NULL, is called for the fibers that did not stop. `fiber` is 0 for a
 * worker between two fibers. The world runs again then. ULX_EUSAGE while it is stopped already, or another caller is
 * about to stop it. Fibers that may want it at the same time must lock a ulx_mutex before. Plain threads, ulx_blocking
 * and ulx_block_enter are not stopped. Hold no lock that a hook takes: a thread that waits for it there does not stop.
 * The caller must not wait before ulx_start_world, which it calls itself. */
ULX_API int ulx_stop_world(ulx_runtime* runtime, int64_t patience, void (*late)(void* user, uint64_t fiber),
                           void* user) ULX_NOEXCEPT;
ULX_API int ulx_start_world(ulx_runtime* runtime) ULX_NOEXCEPT;

/* Writes every worker and fiber as text to a descriptor. Waits while a descriptor in non-blocking mode is full. ENOMEM,
 * errno of write: EPIPE without a signal; ULX_ECANCELED, which leaves a part. */
ULX_API int ulx_dump(ulx_runtime* runtime, int fd) ULX_NOEXCEPT;

/* Present numbers, and counts since the start. Those of the scheduler's ways may be 0 in later versions, because ways
 * change: dispatches, steals, parks, wakes, polls, events, workers_retaken, lost_wakeups. */
typedef struct {
  size_t size;
  uint64_t workers;             /* now */
  uint64_t workers_sleeping;    /* now */
  uint64_t fibers_live;         /* now */
  uint64_t fibers_spawned;      /* ever */
  uint64_t fibers_ended;        /* ever */
  uint64_t dispatches;          /* how often a worker began or continued a fiber or a job */
  uint64_t steals;              /* how often a worker took work from another */
  uint64_t parks;               /* how often a worker went to sleep */
  uint64_t wakes;               /* how often a worker was woken */
  uint64_t polls;               /* of the event loop */
  uint64_t events;              /* of descriptors and timers */
  uint64_t blocking_threads;    /* now, behind ulx_blocking */
  uint64_t stacks_refused;      /* how often the system had no memory for a stack */
  uint64_t workers_retaken;     /* from a thread that was still in a call that blocks */
  uint64_t lost_wakeups;        /* sleepers that the monitor had to wake: a defect of the library */
  uint64_t stack_bytes_trimmed; /* given back by fibers that wait for long */
} ulx_metrics;
/* Writes the counters. `metrics` begins with its size; fields beyond it are not written. */
ULX_API int ulx_runtime_metrics(const ulx_runtime* runtime, ulx_metrics* metrics) ULX_NOEXCEPT;

/* Records the last `events` events of each worker; 0: a default number; more than 2^30: EINVAL. stop writes them to a
 * descriptor as JSON for ui.perfetto.dev; its waits and errors are those of ulx_dump. */
ULX_API int ulx_trace_start(ulx_runtime* runtime, size_t events) ULX_NOEXCEPT;
ULX_API int ulx_trace_stop(ulx_runtime* runtime, int fd) ULX_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
