/* spawn, join, channels, select, mutexes. */
#include "lisp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  type is;
  ulx_fiber* handle;
  value procedure, arguments, parameters; /* until it has begun */
  value result;                           /* at its end */
  bool failed;
  bool awaited; /* that it failed was seen by a join */
} fiber_object;

typedef struct {
  type is;
  ulx_channel* of;
} channel_object;

typedef struct {
  type is;
  ulx_mutex* of;
} mutex_object;

/* Finalizers are called here only, on a fiber that holds nothing: not within a malloc of the collector. */
void give_back_garbage(void) {
  if (GC_should_invoke_finalizers()) GC_invoke_finalizers();
}

static void* finalized(type is, size_t size, GC_finalization_proc finalizer) {
  give_back_garbage();
  void* const made = allocate(is, size);
  GC_register_finalizer_no_order(made, finalizer, NULL, NULL, NULL);
  return made;
}

static void check(fiber* by, const primitive* self, int error) {
  if (!error) return;
  char words[160];
  snprintf(words, sizeof words, "%s: %s", self->name, ulx_strerror(error));
  fail(by, words, NULL);
}

/* Seconds, exact or not, as nanoseconds. */
static int64_t nanoseconds(fiber* by, const primitive* self, value v) {
  if (!is(v, t_real)) check_type(by, self, v, t_integer);
  const double seconds = is_integer(v) ? (double)to_integer(v) : ((real*)v)->number;
  return seconds <= 0 ? 0 : seconds >= 1e9 ? INT64_MAX / 4 : (int64_t)(seconds * 1e9);
}

/* ----------------------------------------------------------------------------------------------------------- fibers */
static void finalize_fiber(void* object, void* unused) {
  (void)unused;
  fiber_object* const f = object;
  if (f->failed && !f->awaited) { /* so no error passes unseen */
    const string* const words = text_of(f->result, false);
    fprintf(stderr, "lisp: a fiber that nothing joins ended with an error: %s\n", words->bytes);
  }
  ulx_fiber_release(f->handle);
}

static value body_of(fiber* by, void* argument) {
  fiber_object* const f = argument;
  const int count = length_of(f->arguments);
  value* const arguments = GC_malloc((size_t)(count + 1) * sizeof *arguments);
  value at = f->arguments;
  for (int i = 0; i < count; ++i, at = rest(at)) arguments[i] = first(at);
  f->arguments = &nil;
  return tail_call(by, f->procedure, count, arguments);
}

static intptr_t run_fiber(void* argument) {
  fiber_object* const f = argument;
  value result = &unspecified;
  f->failed = !run_protected(make_fiber(f->parameters), body_of, f, &result);
  store(&f->result, result);
  return 0;
}

PRIMITIVE(spawn) {
  fiber_object* const made = finalized(t_fiber, sizeof *made, finalize_fiber);
  made->procedure = arguments[0];
  made->arguments = list_of(count - 1, arguments + 1);
  made->parameters = by->parameters;
  ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
  options.name = is(arguments[0], t_closure) ? ((closure*)arguments[0])->of->name : "scheme";
  made->handle = ulx_spawn(run_fiber, made, &options);
  if (!made->handle) check(by, self, errno);
  return (value)made;
}

static fiber_object* fiber_at(fiber* by, const primitive* self, value v) {
  check_type(by, self, v, t_fiber);
  return (fiber_object*)v;
}

/* What it returned; or its error, raised here too. */
PRIMITIVE(join) {
  fiber_object* const f = fiber_at(by, self, arguments[0]);
  const int64_t deadline = count == 2 ? ulx_now() + nanoseconds(by, self, arguments[1]) : ULX_FOREVER;
  check(by, self, ulx_join(f->handle, deadline, NULL));
  f->awaited = true;
  if (f->failed) raise_value(by, f->result);
  return f->result;
}
PRIMITIVE(cancel) { return from_bool(ulx_cancel(fiber_at(by, self, arguments[0])->handle)); }
PRIMITIVE(yield) {
  ulx_yield();
  return &unspecified;
}
PRIMITIVE(sleep_for) {
  check(by, self, ulx_sleep(nanoseconds(by, self, arguments[0])));
  return &unspecified;
}

/* --------------------------------------------------------------------------------------------------------- channels */
static void finalize_channel(void* object, void* unused) {
  (void)unused;
  ulx_channel_destroy(((channel_object*)object)->of);
}

PRIMITIVE(make_channel) {
  const size_t capacity = count == 1 ? (size_t)index_argument(by, self, arguments[0], INT32_MAX) : 0;
  channel_object* const made = finalized(t_channel, sizeof *made, finalize_channel);
  made->of = ulx_channel_new(sizeof(value), capacity);
  if (!made->of) check(by, self, errno);
  return (value)made;
}

static ulx_channel* channel_at(fiber* by, const primitive* self, value v) {
  check_type(by, self, v, t_channel);
  return ((channel_object*)v)->of;
}

PRIMITIVE(send) {
  check(by, self, ulx_send(channel_at(by, self, arguments[0]), &arguments[1], ULX_FOREVER));
  return &unspecified;
}
/* The end-of-file object when it is closed and empty. */
PRIMITIVE(receive) {
  value got = &unspecified;
  const int error = ulx_receive(channel_at(by, self, arguments[0]), &got, ULX_FOREVER);
  if (error == ULX_ECLOSED) return &end_of_file;
  check(by, self, error);
  return got;
}
PRIMITIVE(close_channel) { return from_bool(ulx_close(channel_at(by, self, arguments[0]))); }
PRIMITIVE(channel_length) { return from_integer((intptr_t)ulx_channel_length(channel_at(by, self, arguments[0]))); }

/* (%select seconds-or-#f (channel) (channel value) ...): (index . value). The index is -1 when the time is over. */
PRIMITIVE(select_case) {
  const int cases = count - 1;
  ulx_case* const all = GC_malloc((size_t)(cases + 1) * sizeof *all); /* scanned: it holds channels */
  value* const elements = GC_malloc((size_t)(cases + 1) * sizeof *elements);
  for (int i = 0; i < cases; ++i) {
    const value given = arguments[i + 1];
    const bool sends = rest(given) != &nil;
    elements[i] = sends ? second(given) : &unspecified;
    all[i] = (ulx_case){.what = sends ? ULX_CASE_SEND : ULX_CASE_RECEIVE,
                        .channel = channel_at(by, self, first(given)),
                        .element = &elements[i]};
  }
  const int64_t patience = arguments[0] == &no ? -1 : nanoseconds(by, self, arguments[0]);
  const int64_t deadline = patience < 0 ? ULX_FOREVER : patience == 0 ? 0 : ulx_now() + patience;
  size_t chosen = 0;
  const int error = ulx_select(all, (size_t)cases, deadline, &chosen);
  if (error == ULX_ETIMEDOUT || error == ULX_EWOULDBLOCK) return cons(from_integer(-1), &unspecified);
  check(by, self, error);
  if (all[chosen].what == ULX_CASE_SEND) check(by, self, all[chosen].error);
  return cons(from_integer((intptr_t)chosen), all[chosen].error ? &end_of_file : load(&elements[chosen]));
}

/* ---------------------------------------------------------------------------------------------------------- mutexes */
static void finalize_mutex(void* object, void* unused) {
  (void)unused;
  ulx_mutex_destroy(((mutex_object*)object)->of);
}

PRIMITIVE(make_mutex) {
  mutex_object* const made = finalized(t_mutex, sizeof *made, finalize_mutex);
  made->of = ulx_mutex_new();
  if (!made->of) check(by, self, errno);
  return (value)made;
}
PRIMITIVE(mutex_lock) {
  check_type(by, self, arguments[0], t_mutex);
  check(by, self, ulx_mutex_lock(((mutex_object*)arguments[0])->of));
  return &unspecified;
}
PRIMITIVE(mutex_unlock) {
  check_type(by, self, arguments[0], t_mutex);
  check(by, self, ulx_mutex_unlock(((mutex_object*)arguments[0])->of));
  return &unspecified;
}

void define_fibers(void) {
  static const definition all[] = {{"spawn", 1, -1, spawn},
                                   {"join", 1, 2, join},
                                   {"cancel", 1, 1, cancel},
                                   {"yield", 0, 0, yield},
                                   {"sleep", 1, 1, sleep_for},
                                   {"channel", 0, 1, make_channel},
                                   {"send", 2, 2, send},
                                   {"receive", 1, 1, receive},
                                   {"close", 1, 1, close_channel},
                                   {"channel-length", 1, 1, channel_length},
                                   {"%select", 1, -1, select_case},
                                   {"make-mutex", 0, 0, make_mutex},
                                   {"mutex-lock!", 1, 1, mutex_lock},
                                   {"mutex-unlock!", 1, 1, mutex_unlock}};
  DEFINE(all);
}
