/* The values that the library holds for a program are where a collector looks: on stacks of fibers that wait, in
 * records, or in memory of the hook `allocate`. One worker, so that a value stays in transit as long as the test
 * likes. */
#include "check.h"
#include "words.h"

static struct {
  void* begin;
  size_t size;
} blocks[1000];
static const size_t most_blocks = sizeof blocks / sizeof *blocks;

static char returned;              /* by the main fiber */
static bool result_was_in_a_block; /* after the main fiber's end */

static void* allocate(void* user, size_t bytes) {
  (void)user;
  for (size_t i = 0; i < most_blocks; ++i)
    if (!blocks[i].begin) {
      blocks[i].size = bytes;
      return blocks[i].begin = calloc(1, bytes ? bytes : 1);
    }
  return NULL;
}
static void release(void* user, void* memory) {
  (void)user;
  for (size_t i = 0; i < most_blocks; ++i)
    if (blocks[i].begin == memory) {
      if (memory) result_was_in_a_block |= holds(memory, (char*)memory + blocks[i].size / 8 * 8, &returned);
      blocks[i].begin = NULL;
    }
  free(memory);
}
static int blocks_in_use(void) {
  int count = 0;
  for (size_t i = 0; i < most_blocks; ++i) count += blocks[i].begin != NULL;
  return count;
}

struct search {
  const void* wanted;
  int on_stacks, in_records, in_blocks;
};

/* The stack of the fiber that searches is left out: it knows the value. */
static void visit(void* user, const ulx_fiber_info* fiber) {
  struct search* const search = user;
  if (fiber->sp) search->on_stacks += holds(fiber->sp, fiber->high, search->wanted);
  search->in_records += holds(fiber->record, (const char*)fiber->record + fiber->record_size, search->wanted);
}

static int count_in_blocks(const void* wanted) {
  int found = 0;
  for (size_t i = 0; i < most_blocks; ++i)
    if (blocks[i].begin) found += holds(blocks[i].begin, (char*)blocks[i].begin + blocks[i].size / 8 * 8, wanted);
  return found;
}

static struct search search_for(const void* wanted) {
  ulx_runtime* const runtime = ulx_runtime_here();
  struct search search = {.wanted = wanted};
  CHECK_EQ(ulx_stop_world(runtime, 20 * SECONDS, NULL, NULL), 0);
  ulx_for_each_fiber(runtime, visit, &search);
  CHECK_EQ(ulx_start_world(runtime), 0);
  search.in_blocks = count_in_blocks(wanted);
  return search;
}

enum { most_cases = 20 };
static ulx_channel* channels[most_cases];

static intptr_t receives(void* count) {
  ulx_case cases[most_cases] = {{0}};
  void* got = NULL;
  for (intptr_t i = 0; i < (intptr_t)count; ++i)
    cases[i] = (ulx_case){.what = ULX_CASE_RECEIVE, .channel = channels[i], .element = &got};
  size_t chosen;
  CHECK_EQ(ulx_select(cases, (size_t)(intptr_t)count, ULX_FOREVER, &chosen), 0);
  return (intptr_t)got;
}

static intptr_t sends(void* value) {
  ulx_case cases[most_cases];
  for (int i = 0; i < most_cases; ++i)
    cases[i] = (ulx_case){.what = ULX_CASE_SEND, .channel = channels[i], .element = &value};
  size_t chosen;
  CHECK_EQ(ulx_select(cases, most_cases, ULX_FOREVER, &chosen), 0);
  return 0;
}

/* A sender has given the value to a select, whose fiber has not continued yet. */
static void received_by_select(void) {
  int object;
  for (intptr_t count = 1; count <= most_cases; ++count) {
    ulx_fiber* const fiber = ulx_spawn(receives, (void*)count, NULL);
    CHECK(fiber);
    void* value = &object;
    while (ulx_try_send(channels[0], &value)) ulx_yield(); /* until it waits */
    const struct search search = search_for(&object);
#ifndef ULX_TEST_FAKE_STACKS
    CHECK(search.on_stacks + search.in_blocks > 0);
#else
    CHECK(count < 8 || search.in_blocks > 0);
#endif
    intptr_t result = 0;
    CHECK_EQ(ulx_join(fiber, ULX_FOREVER, &result), 0);
    CHECK(result == (intptr_t)&object);
    ulx_fiber_release(fiber);
  }
}

static void sent_by_select(void) {
  int object;
  ulx_fiber* const fiber = ulx_spawn(sends, &object, NULL);
  CHECK(fiber);
  ulx_yield(); /* now it waits */
  CHECK_EQ(search_for(&object).in_blocks, most_cases);
  void* got = NULL;
  CHECK_EQ(ulx_receive(channels[7], &got, ULX_FOREVER), 0);
  CHECK(got == &object);
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, NULL), 0);
  ulx_fiber_release(fiber);
}

static int destroyed;
static void destroy(void* value) {
  CHECK_EQ(count_in_blocks(value), 1); /* still, until it has returned */
  ++destroyed;
}

/* Sets its values, and waits. */
static ulx_key keys[12];
static intptr_t has_values(void* values) {
  for (int i = 0; i < 12; ++i) CHECK_EQ(ulx_set(keys[i], (char*)values + i), 0);
  char nothing;
  CHECK_EQ(ulx_receive(channels[0], &nothing, ULX_FOREVER), ULX_ECLOSED);
  for (int i = 0; i < 12; ++i) CHECK(ulx_get(keys[i]) == (char*)values + i);
  CHECK_EQ(ulx_set(keys[0], NULL), 0);
  return 0;
}

static void values_of_keys(void) {
  for (int i = 0; i < 12; ++i) CHECK(keys[i] = ulx_key_new(destroy));
  static char values[12];
  ulx_fiber* const fiber = ulx_spawn(has_values, values, NULL);
  CHECK(fiber);
  ulx_yield(); /* now it waits */
  for (int i = 0; i < 12; ++i) CHECK_EQ(search_for(&values[i]).in_blocks, 1);
  ulx_close(channels[0]);
  CHECK_EQ(ulx_join(fiber, ULX_FOREVER, NULL), 0);
  CHECK_EQ(destroyed, 11);
  for (int i = 0; i < 12; ++i) CHECK_EQ(search_for(&values[i]).in_blocks, 0);
  ulx_fiber_release(fiber);
}

static intptr_t body(void* argument) {
  (void)argument;
  for (int i = 0; i < most_cases; ++i) CHECK(channels[i] = ulx_channel_new(sizeof(void*), 0));
  received_by_select();
  sent_by_select();
  values_of_keys();
  for (int i = 0; i < most_cases; ++i) ulx_channel_destroy(channels[i]);
  return (intptr_t)&returned;
}

int main(void) {
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  hooks.allocate = allocate;
  hooks.release = release;
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.threads = 1;
  options.hooks = &hooks;
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  CHECK(runtime);
  intptr_t result = 0;
  CHECK_EQ(ulx_runtime_run(runtime, body, NULL, &result), 0);
  CHECK(result == (intptr_t)&returned);
  CHECK(result_was_in_a_block);
  CHECK_EQ(ulx_runtime_destroy(runtime, ULX_DRAIN, NULL), 0);
  CHECK_EQ(blocks_in_use(), 0);
  puts("passed");
}
