/* Pairs, symbols, characters, vectors, records. */
#include "lisp.h"

#include <ctype.h>
#include <string.h>

value make_primitive(const char* name, int least, int most, function call, value data, int index) {
  primitive* const made = allocate(t_primitive, sizeof *made);
  *made = (primitive){t_primitive, name, least, most, call, data, index};
  return (value)made;
}

void define(const definition* definitions, size_t count) {
  for (const definition* d = definitions; d < definitions + count; ++d)
    ((symbol*)symbol_of(d->name))->global = make_primitive(d->name, d->least, d->most, d->call, &nil, 0);
}

PRIMITIVE(type_test) { return from_bool((int)type_of(arguments[0]) == self->index); }
PRIMITIVE(eof_test) { return from_bool(arguments[0] == &end_of_file); }
PRIMITIVE(eof) { return &end_of_file; }
PRIMITIVE(null_test) { return from_bool(arguments[0] == &nil); }
PRIMITIVE(boolean_test) { return from_bool(arguments[0] == &yes || arguments[0] == &no); }
PRIMITIVE(procedure_test) { return from_bool(is(arguments[0], t_closure) || is(arguments[0], t_primitive)); }
PRIMITIVE(not) { return from_bool(arguments[0] == &no); }
PRIMITIVE(eqv) { return from_bool(same(arguments[0], arguments[1])); }
PRIMITIVE(equal_test) { return from_bool(equal(by, arguments[0], arguments[1])); }

/* ------------------------------------------------------------------------------------------------------------ pairs */
PRIMITIVE(lisp_cons) { return cons(arguments[0], arguments[1]); }
PRIMITIVE(car) {
  check_type(by, self, arguments[0], t_pair);
  return first(arguments[0]);
}
PRIMITIVE(cdr) {
  check_type(by, self, arguments[0], t_pair);
  return rest(arguments[0]);
}
PRIMITIVE(set_car) {
  check_type(by, self, arguments[0], t_pair);
  store(&((pair*)arguments[0])->first, arguments[1]);
  return &unspecified;
}
PRIMITIVE(set_cdr) {
  check_type(by, self, arguments[0], t_pair);
  store(&((pair*)arguments[0])->rest, arguments[1]);
  return &unspecified;
}
PRIMITIVE(list) { return list_of(count, arguments); }
PRIMITIVE(list_test) { return from_bool(length_of(arguments[0]) >= 0); }

static int checked_length(fiber* by, const char* who, value v) {
  const int length = length_of(v);
  if (length < 0) fail(by, who, v);
  return length;
}

static value* checked_items(fiber* by, const char* who, value v, int* count) {
  value* const items = items_of(v, count);
  if (!items) fail(by, who, v);
  return items;
}

PRIMITIVE(length) { return from_integer(checked_length(by, "length: not a list", arguments[0])); }
PRIMITIVE(append_lists) {
  value made = count > 0 ? arguments[count - 1] : &nil;
  for (int i = count - 2; i >= 0; --i) {
    int size = 0;
    value* const items = checked_items(by, "append: not a list", arguments[i], &size);
    while (size-- > 0) made = cons(items[size], made);
  }
  return made;
}
PRIMITIVE(reverse) {
  checked_length(by, "reverse: not a list", arguments[0]);
  value made = &nil;
  for (value at = arguments[0]; is(at, t_pair); at = rest(at)) made = cons(first(at), made);
  return made;
}
PRIMITIVE(list_tail) {
  value at = arguments[0];
  for (intptr_t i = index_argument(by, self, arguments[1], INT32_MAX); i > 0; --i) {
    check_type(by, self, at, t_pair);
    at = rest(at);
  }
  return at;
}

/* index 0: with eqv?, 1: with equal? */
static bool agree(fiber* by, const primitive* self, value a, value b) {
  return self->index ? equal(by, a, b) : same(a, b);
}
PRIMITIVE(member) {
  for (value at = arguments[1]; is(at, t_pair); at = rest(at))
    if (agree(by, self, arguments[0], first(at))) return at;
  return &no;
}
PRIMITIVE(assoc) {
  for (value at = arguments[1]; is(at, t_pair); at = rest(at)) {
    const value known = first(at);
    check_type(by, self, known, t_pair);
    if (agree(by, self, arguments[0], first(known))) return known;
  }
  return &no;
}

/* ------------------------------------------------------------------------------------------- symbols and characters */
PRIMITIVE(symbol_to_string) {
  check_type(by, self, arguments[0], t_symbol);
  return string_from(((symbol*)arguments[0])->name);
}
PRIMITIVE(string_to_symbol) {
  check_type(by, self, arguments[0], t_string);
  const string* const name = (string*)arguments[0];
  if (memchr(name->bytes, 0, name->length)) fail(by, "string->symbol: a zero byte in the name", arguments[0]);
  return symbol_named(name->bytes, name->length);
}
PRIMITIVE(character_to_integer) {
  check_type(by, self, arguments[0], t_character);
  return from_integer((intptr_t)to_character(arguments[0]));
}
PRIMITIVE(integer_to_character) { return from_character((unsigned)index_argument(by, self, arguments[0], 255)); }
enum { c_alphabetic, c_numeric, c_space, c_up, c_down };
PRIMITIVE(character_function) {
  check_type(by, self, arguments[0], t_character);
  const int c = (int)to_character(arguments[0]);
  switch (self->index) {
    case c_alphabetic: return from_bool(isalpha(c));
    case c_numeric: return from_bool(isdigit(c));
    case c_space: return from_bool(isspace(c));
    case c_up: return from_character((unsigned)toupper(c));
    default: return from_character((unsigned)tolower(c));
  }
}

/* ---------------------------------------------------------------------------------------------------------- vectors */
enum { most_items = INT32_MAX };
PRIMITIVE(make_vector) {
  return vector_of(t_vector, (size_t)index_argument(by, self, arguments[0], most_items),
                   count == 2 ? arguments[1] : &no);
}
PRIMITIVE(vector_from) {
  vector* const made = (vector*)vector_of(t_vector, (size_t)count, &nil);
  memcpy(made->items, arguments, (size_t)count * sizeof(value));
  return (value)made;
}
static value* item_at(fiber* by, const primitive* self, value* arguments) {
  check_type(by, self, arguments[0], t_vector);
  vector* const v = (vector*)arguments[0];
  return &v->items[index_argument(by, self, arguments[1], (intptr_t)v->length - 1)];
}
PRIMITIVE(vector_ref) { return load(item_at(by, self, arguments)); }
PRIMITIVE(vector_set) {
  store(item_at(by, self, arguments), arguments[2]);
  return &unspecified;
}
PRIMITIVE(vector_length) {
  check_type(by, self, arguments[0], t_vector);
  return from_integer((intptr_t)((vector*)arguments[0])->length);
}
PRIMITIVE(vector_to_list) {
  check_type(by, self, arguments[0], t_vector);
  return list_of((int)((vector*)arguments[0])->length, ((vector*)arguments[0])->items);
}
PRIMITIVE(list_to_vector) {
  int size = 0;
  const value* const items = checked_items(by, "list->vector: not a list", arguments[0], &size);
  vector* const made = (vector*)vector_of(t_vector, (size_t)size, &nil);
  memcpy(made->items, items, (size_t)size * sizeof *items);
  return (value)made;
}

/* ---------------------------------------------------------------------------------------------------------- records */
/* (%record-type name ((field accessor ...) ...)) */
PRIMITIVE(make_record_type) {
  record_type* const made = allocate(t_record_type, sizeof *made);
  made->name = arguments[0];
  value names = &nil;
  for (value at = arguments[1]; is(at, t_pair); at = rest(at)) {
    const value field = first(at);
    names = cons(is(field, t_pair) ? first(field) : field, names);
  }
  made->fields = &nil;
  for (; names != &nil; names = rest(names)) made->fields = cons(first(names), made->fields);
  return (value)made;
}
static int field_index(fiber* by, value of, value name) {
  int index = 0;
  if (is(of, t_record_type))
    for (value at = ((record_type*)of)->fields; at != &nil; at = rest(at), ++index)
      if (first(at) == name) return index;
  fail(by, "the record type has no such field", name);
}
/* self->data: the type, and the index of the field that each argument sets */
PRIMITIVE(make_record) {
  record_type* const of = (record_type*)first(self->data);
  const int fields = length_of(of->fields);
  record* const made = allocate(t_record, sizeof *made + (size_t)fields * sizeof(value));
  made->of = of;
  for (int i = 0; i < fields; ++i) made->fields[i] = &unspecified;
  value index = rest(self->data);
  for (int i = 0; i < count; ++i, index = rest(index)) made->fields[to_integer(first(index))] = arguments[i];
  return (value)made;
}
PRIMITIVE(record_maker) {
  int size = 0;
  value places = &nil, *last = &places;
  for (value at = arguments[1]; is(at, t_pair); at = rest(at), ++size) {
    *last = cons(from_integer(field_index(by, arguments[0], first(at))), &nil);
    last = &((pair*)*last)->rest;
  }
  return make_primitive("constructor", size, size, make_record, cons(arguments[0], places), 0);
}
PRIMITIVE(is_record) {
  return from_bool(is(arguments[0], t_record) && (value)((record*)arguments[0])->of == self->data);
}
PRIMITIVE(record_test) { return make_primitive("predicate", 1, 1, is_record, arguments[0], 0); }
static value* field_of(fiber* by, const primitive* self, value v) {
  if (!is(v, t_record) || (value)((record*)v)->of != self->data)
    fail(by, "a record of another type", list2(((record_type*)self->data)->name, v));
  return &((record*)v)->fields[self->index];
}
PRIMITIVE(get_field) { return load(field_of(by, self, arguments[0])); }
PRIMITIVE(set_field) {
  store(field_of(by, self, arguments[0]), arguments[1]);
  return &unspecified;
}
PRIMITIVE(record_getter) {
  return make_primitive("getter", 1, 1, get_field, arguments[0], field_index(by, arguments[0], arguments[1]));
}
PRIMITIVE(record_setter) {
  return make_primitive("setter", 2, 2, set_field, arguments[0], field_index(by, arguments[0], arguments[1]));
}

static void define_indexed(const char* name, int arguments, function call, int index) {
  ((symbol*)symbol_of(name))->global = make_primitive(name, arguments, arguments, call, &nil, index);
}

void define_data(void) {
  static const definition all[] = {{"eof-object", 0, 0, eof},
                                   {"eof-object?", 1, 1, eof_test},
                                   {"null?", 1, 1, null_test},
                                   {"boolean?", 1, 1, boolean_test},
                                   {"procedure?", 1, 1, procedure_test},
                                   {"not", 1, 1, not},
                                   {"eq?", 2, 2, eqv},
                                   {"eqv?", 2, 2, eqv},
                                   {"equal?", 2, 2, equal_test},
                                   {"cons", 2, 2, lisp_cons},
                                   {"car", 1, 1, car},
                                   {"cdr", 1, 1, cdr},
                                   {"set-car!", 2, 2, set_car},
                                   {"set-cdr!", 2, 2, set_cdr},
                                   {"list", 0, -1, list},
                                   {"list?", 1, 1, list_test},
                                   {"length", 1, 1, length},
                                   {"append", 0, -1, append_lists},
                                   {"reverse", 1, 1, reverse},
                                   {"list-tail", 2, 2, list_tail},
                                   {"symbol->string", 1, 1, symbol_to_string},
                                   {"string->symbol", 1, 1, string_to_symbol},
                                   {"char->integer", 1, 1, character_to_integer},
                                   {"integer->char", 1, 1, integer_to_character},
                                   {"make-vector", 1, 2, make_vector},
                                   {"vector", 0, -1, vector_from},
                                   {"vector-ref", 2, 2, vector_ref},
                                   {"vector-set!", 3, 3, vector_set},
                                   {"vector-length", 1, 1, vector_length},
                                   {"vector->list", 1, 1, vector_to_list},
                                   {"list->vector", 1, 1, list_to_vector},
                                   {"%record-type", 2, 2, make_record_type},
                                   {"%record-maker", 2, 2, record_maker},
                                   {"%record-test", 1, 1, record_test},
                                   {"%record-getter", 2, 2, record_getter},
                                   {"%record-setter", 2, 2, record_setter}};
  DEFINE(all);
  static const struct {
    const char* name;
    type is;
  } tests[] = {{"pair?", t_pair},      {"symbol?", t_symbol},   {"string?", t_string},
               {"char?", t_character}, {"vector?", t_vector},   {"hash-table?", t_table},
               {"fiber?", t_fiber},    {"channel?", t_channel}, {"socket?", t_socket}};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
    define_indexed(tests[i].name, 1, type_test, (int)tests[i].is);
  define_indexed("memq", 2, member, 0);
  define_indexed("memv", 2, member, 0);
  define_indexed("member", 2, member, 1);
  define_indexed("assq", 2, assoc, 0);
  define_indexed("assv", 2, assoc, 0);
  define_indexed("assoc", 2, assoc, 1);
  define_indexed("char-alphabetic?", 1, character_function, c_alphabetic);
  define_indexed("char-numeric?", 1, character_function, c_numeric);
  define_indexed("char-whitespace?", 1, character_function, c_space);
  define_indexed("char-upcase", 1, character_function, c_up);
  define_indexed("char-downcase", 1, character_function, c_down);
}
