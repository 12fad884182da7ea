/* Boehm's collector beside Ulexite, for C and C++, on Linux. A switch costs nothing extra. Include it in one source
 * file; it needs <gc/gc.h> (8.2 or later). Link with -lgc. C is compiled with -D_GNU_SOURCE.
 *
 *   ulx_boehm_start();                      // first in main, instead of GC_INIT
 *   ulx_hooks hooks = ULX_INIT(ulx_hooks);
 *   ulx_boehm_fill(&hooks);                 // the memory and the threads of runtimes made with these hooks
 *   options.hooks = &hooks;
 *   ulx_runtime* runtime = ulx_runtime_new(&options);
 *   ulx_boehm_scan(runtime);                // from now on its fibers are roots
 *   ...
 *   ulx_boehm_destroy(runtime, ULX_CANCEL, NULL);  // instead of ulx_runtime_destroy
 *
 * How it works: the collector stops all threads by a signal, at any point. A wrapper around its handler notes the stack
 * pointer of each thread, which shows the fiber's stack on which it runs, if any. The stacks of fibers that do not run,
 * and the records of all fibers, are pushed as roots. If a fiber runs but no thread is on its stack, it is being
 * switched, and its whole stack is pushed. A plain thread that holds pointers of the collector must register by
 * ulx_boehm_enter_thread and ulx_boehm_leave_thread, not by the collector's own functions. Give fibers at least 64 KiB
 * of stack, because the handler runs there. If finalizers use channels or stop the world, let the collector not run
 * them within an allocation, which a channel may make while it is locked: GC_set_finalize_on_demand(1). GC_do_blocking
 * is for a thread's own stack (thread_idle, ulx_blocking), not for a fiber's stack. */
#ifndef ULEXITE_BOEHM_H
#define ULEXITE_BOEHM_H

#include <ulexite/interop/ulexite.h>

#ifndef GC_THREADS
#define GC_THREADS
#endif
#ifndef GC_NO_THREAD_REDIRECTS
#define GC_NO_THREAD_REDIRECTS
#endif
#include <gc/gc.h>
#include <gc/gc_mark.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__x86_64__) && !defined(REG_RSP)
#error "boehm.h reads the registers of a signal's context: in C, compile with -D_GNU_SOURCE"
#endif

enum { ulx_boehm_most_threads = 1024, ulx_boehm_most_runtimes = 64 };

typedef struct {
  bool used;
  void* handle;             /* the collector's handle of the thread */
  struct GC_stack_base own; /* of the thread's own stack */
  const void* volatile sp;  /* where it was stopped; null while it runs, and within GC_do_blocking */
  const void *low, *high;   /* of the fiber's stack on which it runs, or null */
} ulx_boehm_thread;

static ulx_boehm_thread ulx_boehm_threads[ulx_boehm_most_threads];
static __thread ulx_boehm_thread* ulx_boehm_mine;
static ulx_runtime* ulx_boehm_runtimes[ulx_boehm_most_runtimes];
static struct sigaction ulx_boehm_handler;
static GC_push_other_roots_proc ulx_boehm_other_roots;
static size_t ulx_boehm_met_in_switch; /* stacks, for tests */

static inline void ulx_boehm_on_suspend(int number, siginfo_t* info, void* context) {
  if (ulx_boehm_mine) {
#if defined(__x86_64__)
    ulx_boehm_mine->sp = (const void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RSP];
#else
    ulx_boehm_mine->sp = (const void*)((ucontext_t*)context)->uc_mcontext.sp;
#endif
  }
  if (ulx_boehm_handler.sa_flags & SA_SIGINFO) {
    ulx_boehm_handler.sa_sigaction(number, info, context);
  } else {
    ulx_boehm_handler.sa_handler(number);
  }
  if (ulx_boehm_mine) ulx_boehm_mine->sp = NULL; /* the next collection may not stop this thread (GC_do_blocking) */
}

static inline void ulx_boehm_take_place(void) {
  for (int i = 0; i < ulx_boehm_most_threads; ++i) {
    ulx_boehm_thread* const place = &ulx_boehm_threads[i];
    if (__atomic_exchange_n(&place->used, true, __ATOMIC_ACQ_REL)) continue;
    ulx_boehm_mine = place;
    place->handle = GC_get_my_stackbottom(&place->own);
    return;
  }
  fputs("ulexite: more than 1024 threads with Boehm's collector\n", stderr);
  abort();
}

/* Registers the calling thread. Call it first on a thread that holds pointers of the collector. */
static inline void ulx_boehm_enter_thread(void) {
  struct GC_stack_base base;
  GC_get_stack_base(&base);
  GC_register_my_thread(&base);
  ulx_boehm_take_place();
}

/* Unregisters the calling thread. Call it last. */
static inline void ulx_boehm_leave_thread(void) {
  ulx_boehm_thread* const place = ulx_boehm_mine;
  GC_set_stackbottom(place->handle, &place->own);
  place->handle = NULL;
  ulx_boehm_mine = NULL;
  GC_unregister_my_thread();
  __atomic_store_n(&place->used, false, __ATOMIC_RELEASE);
}

#ifndef ULX_BOEHM_LEAVE_OUT /* for the tests of the tests: 1 parked stacks, 2 records, 4 stacks met in a switch */
#define ULX_BOEHM_LEAVE_OUT 0
#endif

static inline void ulx_boehm_push_fiber(void* user, const ulx_fiber_info* fiber) {
  (void)user;
  char* const record = (char*)fiber->record;
  if (!(ULX_BOEHM_LEAVE_OUT & 2)) GC_push_all_eager(record, record + fiber->record_size);
  GC_push_all_eager((void*)&fiber->data,
                    (void*)(&fiber->data + 1)); /* what ulx_set_data has set is not in the record */
  if (!fiber->high) return;
  if (fiber->sp) {
    if (!(ULX_BOEHM_LEAVE_OUT & 1)) GC_push_all_eager((char*)fiber->sp, (char*)fiber->high);
    return;
  }
  for (int i = 0; i < ulx_boehm_most_threads; ++i)
    if (ulx_boehm_threads[i].used && ulx_boehm_threads[i].high == fiber->high) return; /* the thread's, as its stack */
  ++ulx_boehm_met_in_switch;
  if (!(ULX_BOEHM_LEAVE_OUT & 4)) GC_push_all_eager((char*)fiber->low, (char*)fiber->high);
}

/* Called with all other threads stopped. */
static inline void GC_CALLBACK ulx_boehm_push_roots(void) {
  if (ulx_boehm_mine) ulx_boehm_mine->sp = __builtin_frame_address(0);
  for (int i = 0; i < ulx_boehm_most_threads; ++i) {
    ulx_boehm_thread* const thread = &ulx_boehm_threads[i];
    thread->low = thread->high = NULL;
    if (!thread->used || !thread->handle) continue;
    struct GC_stack_base base = thread->own;
    if (ulx_stack_around((const void*)thread->sp, &thread->low, &thread->high)) base.mem_base = (void*)thread->high;
    GC_set_stackbottom(thread->handle, &base);
  }
  for (int i = 0; i < ulx_boehm_most_runtimes; ++i)
    if (ulx_boehm_runtimes[i]) ulx_for_each_fiber(ulx_boehm_runtimes[i], ulx_boehm_push_fiber, NULL);
  if (ulx_boehm_other_roots) ulx_boehm_other_roots();
  if (ulx_boehm_mine) ulx_boehm_mine->sp = NULL;
}

/* Starts the collector. Call it first in main, on its thread. */
static inline void ulx_boehm_start(void) {
  GC_INIT();
  GC_allow_register_threads();
  ulx_boehm_take_place();
  ulx_boehm_other_roots = GC_get_push_other_roots();
  GC_set_push_other_roots(ulx_boehm_push_roots);
  sigaction(GC_get_suspend_signal(), NULL, &ulx_boehm_handler);
  struct sigaction wrapper = ulx_boehm_handler;
  wrapper.sa_sigaction = ulx_boehm_on_suspend;
  wrapper.sa_flags |= SA_SIGINFO;
  sigaction(GC_get_suspend_signal(), &wrapper, NULL);
}

static inline void* ulx_boehm_allocate(void* user, size_t bytes) {
  (void)user;
  return GC_malloc_uncollectable(bytes);
}
static inline void ulx_boehm_release(void* user, void* memory) {
  (void)user;
  GC_free(memory);
}
static inline void ulx_boehm_thread_start(void* user, bool worker) {
  (void)user;
  (void)worker;
  ulx_boehm_enter_thread();
}
static inline void ulx_boehm_thread_stop(void* user, bool worker) {
  (void)user;
  (void)worker;
  ulx_boehm_leave_thread();
}

/* Sets the hooks allocate, release, thread_start and thread_stop. */
static inline void ulx_boehm_fill(ulx_hooks* hooks) {
  hooks->allocate = ulx_boehm_allocate;
  hooks->release = ulx_boehm_release;
  hooks->thread_start = ulx_boehm_thread_start;
  hooks->thread_stop = ulx_boehm_thread_stop;
}

static inline void ulx_boehm_exchange(ulx_runtime* from, ulx_runtime* to) {
  for (int i = 0; i < ulx_boehm_most_runtimes; ++i) {
    ulx_runtime* expected = from;
    if (__atomic_compare_exchange_n(&ulx_boehm_runtimes[i], &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return;
  }
  fputs("ulexite: more than 64 runtimes with Boehm's collector, or one that was forgotten already\n", stderr);
  abort();
}
/* Makes the fibers of a runtime roots, until ulx_boehm_forget. */
static inline void ulx_boehm_scan(ulx_runtime* runtime) { ulx_boehm_exchange(NULL, runtime); }
/* Called once all its fibers have ended. */
static inline void ulx_boehm_forget(ulx_runtime* runtime) { ulx_boehm_exchange(runtime, NULL); }
/* Ends a runtime as ulx_runtime_destroy. Fibers that are asked to stop still run, and are no longer roots. So nothing
 * is collected until they have ended. */
static inline int ulx_boehm_destroy(ulx_runtime* runtime, int how, size_t* abandoned) {
  GC_disable();
  ulx_boehm_forget(runtime);
  const int error = ulx_runtime_destroy(runtime, how, abandoned);
  if (error) ulx_boehm_scan(runtime); /* it continues */
  GC_enable();
  return error;
}

#endif
