/* Errors, escapes, dynamic extents, and what else changes the course of a program. */
#include "lisp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of the stack: for the handling of its end; below that for signals, and for functions of C. */
enum { reserve = 32 * 1024, kept_free = 32 * 1024 };

fiber* make_fiber(value parameters) {
  fiber* const made = GC_malloc(sizeof *made);
  const void *low = NULL, *high = NULL;
  if (ulx_stack_bounds(&low, &high)) {
    made->reserve_end = (const char*)low + kept_free;
    made->stack_end = made->reserve_end + reserve;
  }
  made->winds = made->handlers = &nil;
  made->parameters = parameters;
  return made;
}

/* ---------------------------------------------------------------------------------------------------------- escapes */
static escape* begin_escape(fiber* by) {
  escape* const made = allocate(t_escape, sizeof *made);
  made->of = by;
  made->outer = by->innermost;
  made->winds = by->winds;
  made->handlers = by->handlers;
  made->parameters = by->parameters;
  by->innermost = made;
  return made;
}

static void end_escape(escape* ended) {
  ended->over = true;
  ended->of->innermost = ended->outer;
}

/* Whether even what is kept for the end of the stack is in use, for example because a handler recurses without end. */
static bool reserve_is_short(const fiber* by) { return (const char*)__builtin_frame_address(0) < by->reserve_end; }

/* Leaves all extents that were entered since, each with what it wanted to be done after it. Without stack for that they
 * are only left. */
_Noreturn static void leave_to(fiber* by, escape* to, value result) {
  if (reserve_is_short(by)) by->winds = to->winds;
  while (by->winds != to->winds) {
    const value after = first(by->winds);
    by->winds = rest(by->winds);
    apply(by, after, 0, NULL);
  }
  while (by->innermost != to) {
    by->innermost->over = true;
    by->innermost = by->innermost->outer;
  }
  if (by->reserve_end) by->stack_end = by->reserve_end + reserve;
  by->handlers = to->handlers;
  by->parameters = to->parameters;
  to->result = result;
  longjmp(to->place, 1);
}

static value values_of(int count, value* items) {
  if (count == 1) return items[0];
  vector* const made = (vector*)vector_of(t_values, (size_t)count, &nil);
  memcpy(made->items, items, (size_t)count * sizeof(value));
  return (value)made;
}

PRIMITIVE(leave) {
  escape* const to = (escape*)self->data;
  if (to->of != by) fail(by, "a continuation belongs to the fiber that made it", (value)self);
  if (to->over) fail(by, "this call of call/ec has returned already", (value)self);
  leave_to(by, to, values_of(count, arguments));
}

PRIMITIVE(call_ec) {
  escape* const e = begin_escape(by);
  if (setjmp(e->place) == 0) {
    value way_out = make_primitive("continuation", 0, -1, leave, (value)e, 0);
    e->result = apply(by, arguments[0], 1, &way_out);
  }
  end_escape(e);
  return e->result;
}

bool run_protected(fiber* by, value (*body)(fiber* by, void* argument), void* argument, value* result) {
  escape* const e = begin_escape(by);
  by->handlers = cons((value)e, by->handlers); /* where raise finds it, behind all handlers of the program */
  const bool good = setjmp(e->place) == 0;
  if (good) e->result = finish(by, body(by, argument));
  end_escape(e);
  by->handlers = e->handlers;
  *result = e->result;
  return good;
}

/* ----------------------------------------------------------------------------------------------------------- errors */
bool stack_is_short(void) {
  const void *low = NULL, *high = NULL;
  return ulx_stack_bounds(&low, &high) && (const char*)__builtin_frame_address(0) < (const char*)low + kept_free;
}

void fail_too_deep(fiber* by) {
  by->stack_end = by->reserve_end;
  fail(by, "recursion is too deep for this stack", NULL);
}

static value error_of(const char* message, value irritants) {
  error_object* const made = allocate(t_error, sizeof *made);
  made->message = string_from(message);
  made->irritants = irritants;
  return (value)made;
}

/* The innermost handler is called where the error is raised, with the outer ones in force. Without stack for a handler,
 * it is left to run_protected. */
static value call_handler(fiber* by, value condition) {
  value all = by->handlers;
  if (reserve_is_short(by))
    while (all != &nil && !is(first(all), t_escape)) all = rest(all);
  if (all == &nil) { /* cannot be: run_protected stands around everything */
    fprintf(stderr, "lisp: %s\n", text_of(condition, false)->bytes);
    abort();
  }
  if (is(first(all), t_escape)) leave_to(by, (escape*)first(all), condition);
  by->handlers = rest(all);
  const value result = apply(by, first(all), 1, &condition);
  by->handlers = all;
  return result;
}

void raise_value(fiber* by, value condition) {
  call_handler(by, condition);
  by->handlers = rest(by->handlers);
  fail(by, "a handler returned from what raise had raised", condition);
}

void fail(fiber* by, const char* message, value irritant) {
  raise_value(by, error_of(message, irritant ? cons(irritant, &nil) : &nil));
}

void check_type(fiber* by, const primitive* self, value v, type wanted) {
  static const char* const names[] = {
      [t_pair] = "a pair",           [t_symbol] = "a symbol",      [t_string] = "a string",
      [t_vector] = "a vector",       [t_table] = "a hash table",   [t_record] = "a record",
      [t_error] = "an error",        [t_fiber] = "a fiber",        [t_channel] = "a channel",
      [t_mutex] = "a mutex",         [t_socket] = "a socket",      [t_integer] = "an exact integer",
      [t_character] = "a character", [t_parameter] = "a parameter"};
  if (type_of(v) == wanted) return;
  char words[128];
  snprintf(words, sizeof words, "%s: not %s", self->name, names[wanted] ? names[wanted] : "of the right type");
  fail(by, words, v);
}

intptr_t index_argument(fiber* by, const primitive* self, value v, intptr_t most) {
  check_type(by, self, v, t_integer);
  if (to_integer(v) >= 0 && to_integer(v) <= most) return to_integer(v);
  char words[128];
  snprintf(words, sizeof words, "%s: out of range, from 0 to %jd", self->name, (intmax_t)most);
  fail(by, words, v);
}

PRIMITIVE(lisp_raise) { raise_value(by, arguments[0]); }
PRIMITIVE(raise_continuable) { return call_handler(by, arguments[0]); }
PRIMITIVE(lisp_error) {
  error_object* const made = allocate(t_error, sizeof *made);
  made->message = arguments[0];
  made->irritants = list_of(count - 1, arguments + 1);
  raise_value(by, (value)made);
}
PRIMITIVE(is_error) { return from_bool(is(arguments[0], t_error)); }
PRIMITIVE(error_message) {
  check_type(by, self, arguments[0], t_error);
  return ((error_object*)arguments[0])->message;
}
PRIMITIVE(error_irritants) {
  check_type(by, self, arguments[0], t_error);
  return ((error_object*)arguments[0])->irritants;
}
PRIMITIVE(with_exception_handler) {
  const value before = by->handlers;
  by->handlers = cons(arguments[0], before);
  const value result = apply(by, arguments[1], 0, NULL);
  by->handlers = before;
  return result;
}

/* -------------------------------------------------------------------------------------------------- dynamic extents */
PRIMITIVE(dynamic_wind) {
  apply(by, arguments[0], 0, NULL);
  by->winds = cons(arguments[2], by->winds);
  const value result = apply(by, arguments[1], 0, NULL);
  by->winds = rest(by->winds);
  apply(by, arguments[2], 0, NULL);
  return result;
}

PRIMITIVE(parameter_value) {
  for (value p = by->parameters; p != &nil; p = rest(p))
    if (first(first(p)) == (value)self) return rest(first(p));
  return self->data;
}
PRIMITIVE(make_parameter) { return make_primitive("parameter", 0, 0, parameter_value, arguments[0], 0); }
/* (%with-parameter parameter value thunk) */
PRIMITIVE(with_parameter) {
  const value before = by->parameters;
  by->parameters = cons(cons(arguments[0], arguments[1]), before);
  const value result = apply(by, arguments[2], 0, NULL);
  by->parameters = before;
  return result;
}

/* ----------------------------------------------------------------------------------------------------------- others */
PRIMITIVE(lisp_apply) {
  const value last = arguments[count - 1];
  int more = 0;
  value* const items = items_of(last, &more);
  if (!items) fail(by, "apply: the last argument is not a list", last);
  const int all = count - 2 + more;
  value* const given = GC_malloc((size_t)(all + 1) * sizeof *given);
  memcpy(given, arguments + 1, (size_t)(count - 2) * sizeof *given);
  memcpy(given + count - 2, items, (size_t)more * sizeof *given);
  return tail_call(by, arguments[0], all, given);
}
PRIMITIVE(lisp_values) { return values_of(count, arguments); }
PRIMITIVE(call_with_values) {
  value made = apply(by, arguments[0], 0, NULL);
  if (!is(made, t_values)) return tail_call(by, arguments[1], 1, &made);
  return tail_call(by, arguments[1], (int)((vector*)made)->length, ((vector*)made)->items);
}
PRIMITIVE(lisp_eval) { return evaluate(by, arguments[0]); }
PRIMITIVE(load_file) {
  check_type(by, self, arguments[0], t_string);
  const string* const path = (string*)arguments[0];
  const string* const all = file_text(by, path->bytes);
  return evaluate_text(by, all->bytes, all->length, path->bytes);
}
PRIMITIVE(lisp_exit) {
  fflush(stdout);
  _Exit(count == 0 || arguments[0] == &yes ? 0 : is_integer(arguments[0]) ? (int)to_integer(arguments[0]) : 1);
}
PRIMITIVE(jiffy) { return from_integer(ulx_now()); }
PRIMITIVE(second_now) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return real_of((double)now.tv_sec + (double)now.tv_nsec / 1e9);
}
PRIMITIVE(collect) {
  GC_gcollect();
  give_back_garbage();
  return from_integer((intptr_t)GC_get_gc_no());
}
PRIMITIVE(heap_size) { return from_integer((intptr_t)GC_get_heap_size()); }
PRIMITIVE(allocated) { return from_integer((intptr_t)GC_get_total_bytes()); }
value command_line_arguments = &nil;
PRIMITIVE(command_line) { return command_line_arguments; }

void define_control(void) {
  static const definition all[] = {{"call/ec", 1, 1, call_ec},
                                   {"call-with-escape-continuation", 1, 1, call_ec},
                                   {"raise", 1, 1, lisp_raise},
                                   {"raise-continuable", 1, 1, raise_continuable},
                                   {"error", 1, -1, lisp_error},
                                   {"error-object?", 1, 1, is_error},
                                   {"error-object-message", 1, 1, error_message},
                                   {"error-object-irritants", 1, 1, error_irritants},
                                   {"with-exception-handler", 2, 2, with_exception_handler},
                                   {"dynamic-wind", 3, 3, dynamic_wind},
                                   {"make-parameter", 1, 1, make_parameter},
                                   {"%with-parameter", 3, 3, with_parameter},
                                   {"apply", 2, -1, lisp_apply},
                                   {"values", 0, -1, lisp_values},
                                   {"call-with-values", 2, 2, call_with_values},
                                   {"eval", 1, 2, lisp_eval},
                                   {"load", 1, 1, load_file},
                                   {"exit", 0, 1, lisp_exit},
                                   {"current-jiffy", 0, 0, jiffy},
                                   {"current-second", 0, 0, second_now},
                                   {"collect", 0, 0, collect},
                                   {"heap-size", 0, 0, heap_size},
                                   {"allocated", 0, 0, allocated},
                                   {"command-line", 0, 0, command_line}};
  DEFINE(all);
}
