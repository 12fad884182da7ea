/* From data to text. */
#include "lisp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append(text* to, const char* bytes, size_t length) {
  if (to->length + length > to->room) {
    to->room = 2 * (to->length + length) + 16;
    to->bytes = GC_realloc(to->bytes ? to->bytes : GC_malloc_atomic(16), to->room);
  }
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
}

static void append_words(text* to, const char* words) { append(to, words, strlen(words)); }

static void append_real(text* to, double number) {
  char digits[32];
  for (int precision = 15; precision <= 17; ++precision) { /* the shortest that reads as the same number */
    snprintf(digits, sizeof digits, "%.*g", precision, number);
    if (strtod(digits, NULL) == number) break;
  }
  append_words(to, digits);
  if (!strpbrk(digits, ".en")) append(to, ".", 1);
}

static void append_string(text* to, const string* s) {
  append(to, "\"", 1);
  for (size_t i = 0; i < s->length; ++i) {
    const char c = s->bytes[i];
    const char* const escaped = c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : NULL;
    if (escaped) {
      append_words(to, escaped);
    } else {
      append(to, &c, 1);
    }
  }
  append(to, "\"", 1);
}

static void append_character(text* to, unsigned c, bool written) {
  const char byte = (char)c;
  if (!written) {
    append(to, &byte, 1);
    return;
  }
  append(to, "#\\", 2);
  if (c == ' ' || c == '\n') {
    append_words(to, c == ' ' ? "space" : "newline");
  } else {
    append(to, &byte, 1);
  }
}

/* What has more values, or lies deeper, is cut: it may be a circle. */
enum { most_values = 1000000, deepest = 1000 };
static void append_within(text* to, value v, bool written, int depth);

static void append_list(text* to, value v, bool written, int depth) {
  append(to, "(", 1);
  for (;;) {
    append_within(to, first(v), written, depth);
    v = rest(v);
    if (!is(v, t_pair)) break;
    append(to, " ", 1);
    if (to->values >= most_values) {
      append_words(to, "...");
      v = &nil;
      break;
    }
  }
  if (v != &nil) {
    append(to, " . ", 3);
    append_within(to, v, written, depth);
  }
  append(to, ")", 1);
}

static void append_items(text* to, const char* open, value* items, size_t count, bool written, int depth) {
  append_words(to, open);
  for (size_t i = 0; i < count; ++i) {
    if (i) append(to, " ", 1);
    append_within(to, load(&items[i]), written, depth);
    if (to->values >= most_values) break;
  }
  append(to, ")", 1);
}

static void append_named(text* to, const char* kind, const char* name) {
  append_words(to, "#<");
  append_words(to, kind);
  if (name) {
    append(to, " ", 1);
    append_words(to, name);
  }
  append(to, ">", 1);
}

static void append_record(text* to, record* r, bool written, int depth) {
  append_words(to, "#<");
  append_within(to, r->of->name, written, depth);
  value* field = r->fields;
  for (value names = r->of->fields; names != &nil; names = rest(names), ++field) {
    append(to, " ", 1);
    append_within(to, first(names), written, depth);
    append(to, "=", 1);
    append_within(to, load(field), written, depth);
  }
  append(to, ">", 1);
}

static const char* constant_name(value v) {
  return v == &nil ? "()" : v == &yes ? "#t" : v == &no ? "#f" : v == &end_of_file ? "#<eof>" : "#<unspecified>";
}

static void append_within(text* to, value v, bool written, int depth) {
  if (++to->values > most_values || depth == 0 || stack_is_short()) {
    append_words(to, "...");
    return;
  }
  char digits[32];
  switch (type_of(v)) {
    case t_integer:
      snprintf(digits, sizeof digits, "%jd", (intmax_t)to_integer(v));
      append_words(to, digits);
      break;
    case t_constant: append_words(to, constant_name(v)); break;
    case t_character: append_character(to, to_character(v), written); break;
    case t_symbol: append_words(to, ((symbol*)v)->name); break;
    case t_alias: append_within(to, plain(v), written, depth); break;
    case t_real: append_real(to, ((real*)v)->number); break;
    case t_string:
      if (written) {
        append_string(to, (string*)v);
      } else {
        append(to, ((string*)v)->bytes, ((string*)v)->length);
      }
      break;
    case t_pair: append_list(to, v, written, depth - 1); break;
    case t_vector: append_items(to, "#(", ((vector*)v)->items, ((vector*)v)->length, written, depth - 1); break;
    case t_values: append_items(to, "#<values ", ((vector*)v)->items, ((vector*)v)->length, written, depth - 1); break;
    case t_record: append_record(to, (record*)v, written, depth - 1); break;
    case t_error:
      append_within(to, ((error_object*)v)->message, false, depth - 1);
      for (value i = ((error_object*)v)->irritants; is(i, t_pair) && to->values < most_values; i = rest(i)) {
        append_words(to, i == ((error_object*)v)->irritants ? ": " : " ");
        append_within(to, first(i), true, depth - 1);
      }
      break;
    case t_closure: append_named(to, "procedure", ((closure*)v)->of->name); break;
    case t_primitive: append_named(to, "procedure", ((primitive*)v)->name); break;
    case t_table: append_named(to, "hash-table", NULL); break;
    case t_macro: append_named(to, "macro", NULL); break;
    case t_record_type: append_named(to, "record-type", NULL); break;
    case t_escape: append_named(to, "continuation", NULL); break;
    case t_parameter: append_named(to, "parameter", NULL); break;
    case t_fiber: append_named(to, "fiber", NULL); break;
    case t_channel: append_named(to, "channel", NULL); break;
    case t_mutex: append_named(to, "mutex", NULL); break;
    case t_socket: append_named(to, "socket", NULL); break;
  }
}

void append_value(text* to, value v, bool written) {
  to->values = 0;
  append_within(to, v, written, deepest);
}

string* text_of(value v, bool written) {
  text made = {0};
  append_value(&made, v, written);
  return (string*)string_of(made.bytes, made.length);
}
