/* Boehm's collector. Objects live through forced collections if only parked, running and new fibers refer to them,
 * or channels hold them. There are 480 collections for each width, or 60 times the given number. boehm_broken is the
 * same program with parked stacks left out, and must lose some. */
#include "check.h"

#include <ulexite/interop/boehm.h>

typedef struct node {
  struct node* next;
  uint64_t key, check;
} node;

enum { fibers = 1500, wanderers = 20 };
static int rounds = 8;
static long lost, checks, collections;
static ulx_channel* gates[fibers];
static ulx_channel* never; /* nothing comes through it */
static bool over;

/* A lost object may have been used again, so that its `next` is no pointer into the heap. */
static bool intact(const node* head, uint64_t id, int length) {
  int count = 0;
  for (; head; head = head->next, ++count)
    if (count > length || !GC_base((void*)head) || head->check != (head->key ^ 0xdeadbeefcafef00d) ||
        head->key >> 32 != id)
      return false;
  return count == length;
}

static __attribute__((noinline)) node* add(node* next, uint64_t id, int number) {
  node* const made = GC_MALLOC(sizeof *made);
  made->next = next;
  made->key = id << 32 | (unsigned)number;
  made->check = made->key ^ 0xdeadbeefcafef00d;
  return made;
}

static __attribute__((noinline)) void make_garbage(unsigned seed) {
  for (unsigned i = 0; i < 6; ++i) memset(GC_MALLOC_ATOMIC(24 + (seed + i) % 16 * 16), 0xee, 24);
}

static void look_at(const node* head, uint64_t id, int length) {
  if (!intact(head, id, length)) __atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void keep_as_data(uint64_t id) { CHECK_EQ(ulx_set_data(add(NULL, id, 0)), 0); }

/* Overwrites what earlier calls have left on the stack. */
static __attribute__((noinline)) void clear_stack(void) {
  char room[2048];
  memset(room, 0, sizeof room);
  __asm__ volatile("" : : "r"(room) : "memory");
}

/* Waits at its gate, with a list that only its stack knows, and with one that only ulx_data knows; what comes through
 * the gate is a list too. */
static intptr_t parked(void* argument) {
  node* head = argument;
  const uint64_t id = head->key >> 32;
  int length = 5;
  node* sent;
  keep_as_data(id);
  clear_stack();
  while (ulx_receive(gates[id - 1], &sent, ULX_FOREVER) == 0) {
    look_at(head, id, length);
    look_at(sent, id, 1);
    look_at(ulx_data(), id, 1);
    clear_stack();
    if (__atomic_load_n(&lost, __ATOMIC_RELAXED)) break;
    head = add(head, id, length++);
    make_garbage((unsigned)id);
    ulx_yield();
  }
  return (intptr_t)head; /* a result is a root until the handle goes */
}

/* The worker goes to a thread of the pool meanwhile, so the fiber's thread and that one are to be known. */
static void look_while_blocked(const node* head, uint64_t id, int length) {
  ulx_block block;
  ulx_block_enter(&block);
  look_at(head, id, length);
  make_garbage((unsigned)length);
  ulx_block_leave(&block);
}

static intptr_t wanders(void* argument) {
  node* head = argument;
  const uint64_t id = head->key >> 32;
  int length = 5;
  for (int step = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); ++step) {
    if (step % 64 == 0) {
      look_at(head, id, length);
      make_garbage((unsigned)step);
      head = add(head->next, id, step);
    }
    if (step % 1024 == 0) look_while_blocked(head, id, length);
    ulx_yield();
  }
  return 0;
}

static intptr_t drives(void* argument) {
  const int first = *(int*)argument;
  for (int round = 0; round < rounds; ++round) {
    for (int i = first; i < fibers; i += 4) {
      node* const sent = add(NULL, (uint64_t)i + 1, round);
      if (ulx_send(gates[i], &sent, ULX_FOREVER)) return 1;
      if (i % 100 == first) {
        GC_gcollect();
        __atomic_add_fetch(&collections, 1, __ATOMIC_RELAXED);
      }
    }
    make_garbage((unsigned)round);
    if (__atomic_load_n(&lost, __ATOMIC_RELAXED)) break;
  }
  return 0;
}

static ulx_fiber* start(intptr_t (*function)(void*), uint64_t id) {
  node* head = NULL;
  for (int i = 0; i < 5; ++i) head = add(head, id, i);
  ulx_fiber* const started = ulx_spawn(function, head, NULL);
  CHECK(started);
  return started;
}

/* Collects after it was asked to stop, beside others alike. */
static void stops_late(void* gate) {
  const uint64_t id = fibers + wanderers + 1;
  node* head = NULL;
  for (int i = 0; i < 5; ++i) head = add(head, id, i);
  char nothing;
  CHECK_EQ(ulx_receive(gate, &nothing, ULX_FOREVER), ULX_ECANCELED);
  GC_gcollect();
  for (unsigned i = 0; i < 20; ++i) add(NULL, id, 0);
  ulx_yield();
  look_at(head, id, 5);
}

static intptr_t body(void* argument) {
  (void)argument;
  for (int i = 0; i < 8; ++i) CHECK_EQ(ulx_go(stops_late, never, NULL), 0);
  static ulx_fiber *all[fibers], *others[wanderers];
  for (int i = 0; i < fibers; ++i) {
    CHECK(gates[i] = ulx_channel_new(sizeof(node*), 2));
    all[i] = start(parked, (uint64_t)i + 1);
  }
  over = false;
  for (int i = 0; i < wanderers; ++i) others[i] = start(wanders, (uint64_t)fibers + (uint64_t)i + 1);
  int firsts[4] = {0, 1, 2, 3};
  ulx_fiber* drivers[4];
  for (int i = 0; i < 4; ++i) CHECK(drivers[i] = ulx_spawn(drives, &firsts[i], NULL));
  for (int i = 0; i < 4; ++i) {
    CHECK_EQ(ulx_join(drivers[i], ULX_FOREVER, NULL), 0);
    ulx_fiber_release(drivers[i]);
  }
  __atomic_store_n(&over, true, __ATOMIC_RELAXED);
  for (int i = 0; i < wanderers; ++i) {
    CHECK_EQ(ulx_join(others[i], ULX_FOREVER, NULL), 0);
    ulx_fiber_release(others[i]);
  }
  for (int i = 0; i < fibers; ++i) ulx_close(gates[i]);
  for (int i = 0; i < fibers; ++i) {
    intptr_t result = 0;
    CHECK_EQ(ulx_join(all[i], ULX_FOREVER, &result), 0);
    if (i % 300 == 0) GC_gcollect();
    if (!lost) look_at((const node*)result, (uint64_t)i + 1, 5 + rounds);
    ulx_fiber_release(all[i]);
    ulx_channel_destroy(gates[i]);
  }
  return 42;
}

typedef struct {
  void (*sleep)(void*);
  void* data;
} nap;
static void* take_nap(void* argument) {
  const nap* const of = argument;
  of->sleep(of->data);
  return NULL;
}
/* The collector does not stop a worker that sleeps. */
static void idle(void* user, void (*sleep)(void*), void* data) {
  (void)user;
  nap of = {sleep, data};
  GC_do_blocking(take_nap, &of);
}

int main(int argc, char** argv) {
  ulx_boehm_start();
  if (argc > 1) rounds = atoi(argv[1]);
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  ulx_boehm_fill(&hooks);
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.hooks = &hooks;
  options.stack_size = 64 * 1024;
  for (options.threads = 1; options.threads <= 16 && !lost; options.threads *= options.threads == 4 ? 4 : 2) {
    if (options.threads >= 4) hooks.thread_idle = idle;
    ulx_runtime* const runtime = ulx_runtime_new(&options);
    CHECK(runtime);
    ulx_boehm_scan(runtime);
    CHECK(never = ulx_channel_new(sizeof(void*), 0));
    const int64_t begin = ulx_now();
    intptr_t result = 0;
    CHECK_EQ(ulx_runtime_run(runtime, body, NULL, &result), 0);
    CHECK_EQ(result, 42);
    CHECK_EQ(ulx_boehm_destroy(runtime, ULX_CANCEL, NULL), 0);
    ulx_channel_destroy(never);
    printf("%zu workers: %ld lost of %ld checks, %ld collections, %zu stacks met in a switch, %.1f s\n",
           options.threads, lost, checks, collections, ulx_boehm_met_in_switch, (double)(ulx_now() - begin) / 1e9);
  }
#if ULX_BOEHM_LEAVE_OUT
  CHECK(lost > 0);
#else
  CHECK_EQ(lost, 0);
#endif
  puts("passed");
}
