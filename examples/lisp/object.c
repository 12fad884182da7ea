/* Objects: how they are made and compared. */
#include "lisp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

object nil = {t_constant}, yes = {t_constant}, no = {t_constant}, unspecified = {t_constant},
       end_of_file = {t_constant}, tail = {t_constant};

static void* initialized(void* memory, type is) {
  if (!memory) {
    fputs("lisp: out of memory\n", stderr);
    abort();
  }
  ((value)memory)->is = is;
  return memory;
}

void* allocate(type is, size_t size) { return initialized(GC_malloc(size), is); }
void* allocate_plain(type is, size_t size) { return initialized(GC_malloc_atomic(size), is); }

value cons(value a, value b) {
  pair* const made = allocate(t_pair, sizeof *made);
  made->first = a;
  made->rest = b;
  return (value)made;
}

/* Symbols live as long as the process. */
enum { symbol_buckets = 1024 };
static symbol* symbols[symbol_buckets];
static pthread_mutex_t symbols_lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t hash_bytes(const char* bytes, size_t length) {
  uintptr_t hash = 14695981039346656037u; /* FNV-1a */
  for (size_t i = 0; i < length; ++i) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
  return hash;
}

value symbol_named(const char* name, size_t length) {
  symbol** const bucket = &symbols[hash_bytes(name, length) % symbol_buckets];
  pthread_mutex_lock(&symbols_lock); /* nothing waits while it is held: not even a finalizer runs */
  symbol* found = *bucket;
  while (found && (strlen(found->name) != length || memcmp(found->name, name, length) != 0)) found = found->next;
  if (!found) {
    found = allocate(t_symbol, sizeof *found + length + 1);
    memcpy(found->name, name, length);
    found->next = *bucket;
    *bucket = found;
  }
  pthread_mutex_unlock(&symbols_lock);
  return (value)found;
}

value symbol_of(const char* name) { return symbol_named(name, strlen(name)); }

value string_of(const char* bytes, size_t length) {
  string* const made = allocate_plain(t_string, sizeof *made + length + 1);
  made->length = length;
  if (length) memcpy(made->bytes, bytes, length);
  made->bytes[length] = 0;
  return (value)made;
}

value string_from(const char* words) { return string_of(words, strlen(words)); }

value real_of(double number) {
  real* const made = allocate_plain(t_real, sizeof *made);
  made->number = number;
  return (value)made;
}

value vector_of(type is, size_t length, value fill) {
  vector* const made = allocate(is, sizeof *made + length * sizeof(value));
  made->length = length;
  for (size_t i = 0; i < length; ++i) made->items[i] = fill;
  return (value)made;
}

value list_of(int count, const value* items) {
  value made = &nil;
  while (count-- > 0) made = cons(items[count], made);
  return made;
}

value list2(value a, value b) { return cons(a, cons(b, &nil)); }
value list3(value a, value b, value c) { return cons(a, list2(b, c)); }

/* Of steps along a list: there the pair is marked that shows a circle when it is met again (Brent, 1980). Unlike a
 * second, slower walk this reads each pair once, so no change by another fiber misleads it. */
static bool is_power_of_two(int steps) { return (steps & (steps - 1)) == 0; }

int length_of(value list) {
  int length = 0;
  for (value mark = list; is(list, t_pair);) {
    list = rest(list);
    if (list == mark) return -1; /* a circle */
    if (is_power_of_two(++length)) mark = list;
  }
  return list == &nil ? length : -1;
}

value* items_of(value list, int* count) {
  int length = 0, room = 8;
  value* made = GC_malloc((size_t)room * sizeof *made);
  for (value mark = list; is(list, t_pair);) {
    if (length == room) made = GC_realloc(made, (size_t)(room *= 2) * sizeof *made);
    made[length] = first(list);
    list = rest(list);
    if (list == mark) return NULL;
    if (is_power_of_two(++length)) mark = list;
  }
  *count = length;
  return list == &nil ? made : NULL;
}

bool same(value a, value b) {
  return a == b || (is(a, t_real) && is(b, t_real) && ((real*)a)->number == ((real*)b)->number);
}

/* A circle by the rests of pairs ends where both sides are again at a marked pair: all on the way was equal. Any other
 * circle ends as recursion that is too deep. */
bool equal(fiber* by, value a, value b) {
  check_stack(by);
  value mark_a = NULL, mark_b = NULL;
  for (int steps = 1;; ++steps) {
    if (same(a, b) || (a == mark_a && b == mark_b)) return true;
    const type is = type_of(a);
    if (is != type_of(b)) return false;
    if (is == t_string) {
      const string *x = (string*)a, *y = (string*)b;
      return x->length == y->length && memcmp(x->bytes, y->bytes, x->length) == 0;
    }
    if (is == t_vector) {
      vector *x = (vector*)a, *y = (vector*)b;
      if (x->length != y->length) return false;
      for (size_t i = 0; i < x->length; ++i)
        if (!equal(by, load(&x->items[i]), load(&y->items[i]))) return false;
      return true;
    }
    if (is != t_pair || !equal(by, first(a), first(b))) return false;
    if (is_power_of_two(steps)) {
      mark_a = a;
      mark_b = b;
    }
    a = rest(a);
    b = rest(b);
  }
}

static uintptr_t hash_within(value v, int depth) {
  switch (type_of(v)) {
    case t_string: return hash_bytes(((string*)v)->bytes, ((string*)v)->length);
    case t_real: return hash_bytes((const char*)&((real*)v)->number, sizeof(double));
    case t_pair: return depth == 0 ? 1 : hash_within(first(v), depth - 1) * 31 + hash_within(rest(v), depth - 1);
    case t_vector: return ((vector*)v)->length;
    default: return ((uintptr_t)v >> 1) * 11400714819323198485u; /* 2^64 / the golden ratio */
  }
}

uintptr_t hash_of(value v) {
  const uintptr_t hash = hash_within(v, 8);
  return hash ^ hash >> 29;
}
