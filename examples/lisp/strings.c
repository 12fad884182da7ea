/* Strings of bytes, and output. */
#include "lisp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static string* string_at(fiber* by, const primitive* self, value v) {
  check_type(by, self, v, t_string);
  return (string*)v;
}

PRIMITIVE(make_string) {
  const size_t length = (size_t)index_argument(by, self, arguments[0], INT32_MAX);
  string* const made = allocate_plain(t_string, sizeof *made + length + 1);
  made->length = length;
  if (count == 2) check_type(by, self, arguments[1], t_character);
  memset(made->bytes, count == 2 ? (int)to_character(arguments[1]) : ' ', length);
  made->bytes[length] = 0;
  return (value)made;
}
PRIMITIVE(string_length) { return from_integer((intptr_t)string_at(by, self, arguments[0])->length); }
PRIMITIVE(string_ref) {
  const string* const s = string_at(by, self, arguments[0]);
  return from_character((unsigned char)s->bytes[index_argument(by, self, arguments[1], (intptr_t)s->length - 1)]);
}
PRIMITIVE(string_set) {
  string* const s = string_at(by, self, arguments[0]);
  check_type(by, self, arguments[2], t_character);
  s->bytes[index_argument(by, self, arguments[1], (intptr_t)s->length - 1)] = (char)to_character(arguments[2]);
  return &unspecified;
}
/* substring and string-copy: from, and to where, may be left out */
PRIMITIVE(substring) {
  const string* const s = string_at(by, self, arguments[0]);
  const intptr_t end = count > 2 ? index_argument(by, self, arguments[2], (intptr_t)s->length) : (intptr_t)s->length;
  const intptr_t begin = count > 1 ? index_argument(by, self, arguments[1], end) : 0;
  return string_of(s->bytes + begin, (size_t)(end - begin));
}
PRIMITIVE(string_append) {
  text made = {0};
  for (int i = 0; i < count; ++i) {
    const string* const s = string_at(by, self, arguments[i]);
    append(&made, s->bytes, s->length);
  }
  return string_of(made.bytes, made.length);
}

static int compare(const string* a, const string* b) {
  const int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}
enum { equals, less, greater };
PRIMITIVE(string_compare) {
  const int order = compare(string_at(by, self, arguments[0]), string_at(by, self, arguments[1]));
  return from_bool(self->index == equals ? order == 0 : self->index == less ? order < 0 : order > 0);
}

PRIMITIVE(string_to_list) {
  const string* const s = string_at(by, self, arguments[0]);
  value made = &nil;
  for (size_t i = s->length; i-- > 0;) made = cons(from_character((unsigned char)s->bytes[i]), made);
  return made;
}
PRIMITIVE(list_to_string) {
  text made = {0};
  for (value at = arguments[0]; is(at, t_pair); at = rest(at)) {
    check_type(by, self, first(at), t_character);
    append_value(&made, first(at), false);
  }
  return string_of(made.bytes, made.length);
}
/* (string-index text character): where it first is, or #f */
PRIMITIVE(string_index) {
  const string* const s = string_at(by, self, arguments[0]);
  check_type(by, self, arguments[1], t_character);
  const char* const found = memchr(s->bytes, (int)to_character(arguments[1]), s->length);
  return found ? from_integer(found - s->bytes) : &no;
}
enum { upper, lower };
PRIMITIVE(string_case) {
  const string* const s = string_at(by, self, arguments[0]);
  string* const made = (string*)string_of(s->bytes, s->length);
  for (size_t i = 0; i < made->length; ++i)
    made->bytes[i] =
        (char)(self->index == upper ? toupper((unsigned char)made->bytes[i]) : tolower((unsigned char)made->bytes[i]));
  return (value)made;
}

/* ~a as display, ~s as write, ~% a new line, ~~ itself */
static void format_into(text* made, fiber* by, const primitive* self, int count, value* arguments) {
  const string* const how = string_at(by, self, arguments[0]);
  int next = 1;
  for (size_t i = 0; i < how->length; ++i) {
    if (how->bytes[i] != '~') {
      append(made, &how->bytes[i], 1);
      continue;
    }
    const char c = how->bytes[++i]; /* at most the zero at the end */
    if (c == '%') append(made, "\n", 1);
    if (c == '~') append(made, "~", 1);
    if (c == '%' || c == '~') continue;
    if (c != 'a' && c != 's') fail(by, "format: ~ and an unknown letter", arguments[0]);
    if (next == count) fail(by, "format: too few values", arguments[0]);
    append_value(made, arguments[next++], c == 's');
  }
  if (next != count) fail(by, "format: too many values", arguments[0]);
}
PRIMITIVE(format) {
  text made = {0};
  format_into(&made, by, self, count, arguments);
  return string_of(made.bytes, made.length);
}

/* All at once, so that what fibers print is not mixed within a call. */
static value print(const text* all) {
  if (all->length) fwrite(all->bytes, 1, all->length, stdout);
  return &unspecified;
}
enum { as_display, as_write };
PRIMITIVE(display) {
  text made = {0};
  append_value(&made, arguments[0], self->index == as_write);
  return print(&made);
}
PRIMITIVE(newline) { return print(&(text){.bytes = (char[]){'\n'}, .length = 1}); }
/* Each as display does, and a new line. */
PRIMITIVE(print_line) {
  text made = {0};
  for (int i = 0; i < count; ++i) append_value(&made, arguments[i], false);
  append(&made, "\n", 1);
  return print(&made);
}
PRIMITIVE(flush) {
  fflush(stdout);
  return &unspecified;
}

void define_strings(void) {
  static const definition all[] = {{"make-string", 1, 2, make_string},
                                   {"string-length", 1, 1, string_length},
                                   {"string-ref", 2, 2, string_ref},
                                   {"string-set!", 3, 3, string_set},
                                   {"substring", 2, 3, substring},
                                   {"string-copy", 1, 3, substring},
                                   {"string-append", 0, -1, string_append},
                                   {"string->list", 1, 1, string_to_list},
                                   {"list->string", 1, 1, list_to_string},
                                   {"string-index", 2, 2, string_index},
                                   {"format", 1, -1, format},
                                   {"newline", 0, 0, newline},
                                   {"print", 0, -1, print_line},
                                   {"flush-output-port", 0, 0, flush}};
  DEFINE(all);
  static const struct {
    const char* name;
    int arguments;
    function call;
    int index;
  } families[] = {{"string=?", 2, string_compare, equals},
                  {"string<?", 2, string_compare, less},
                  {"string>?", 2, string_compare, greater},
                  {"string-upcase", 1, string_case, upper},
                  {"string-downcase", 1, string_case, lower},
                  {"display", 1, display, as_display},
                  {"write", 1, display, as_write}};
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i)
    ((symbol*)symbol_of(families[i].name))->global = make_primitive(
        families[i].name, families[i].arguments, families[i].arguments, families[i].call, &nil, families[i].index);
}
