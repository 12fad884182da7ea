/* From text to data. */
#include "lisp.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *at, *end;
  const char* error;
  bool unfinished;
  int depth;
} reader;

static value read_any(reader* r);

static value refuse(reader* r, const char* why, bool unfinished) {
  if (!r->error) {
    r->error = why;
    r->unfinished = unfinished;
  }
  return NULL;
}

/* Not the zero byte, which strchr would find at the end of its list. */
static bool delimits(char c) { return isspace((unsigned char)c) || (c != 0 && strchr("()\";'`,", c)); }

static void skip_space(reader* r) {
  while (r->at < r->end) {
    if (isspace((unsigned char)*r->at)) {
      ++r->at;
    } else if (*r->at == ';') {
      while (r->at < r->end && *r->at != '\n') ++r->at;
    } else if (r->end - r->at >= 2 && r->at[0] == '#' && r->at[1] == ';') {
      r->at += 2;
      if (!read_any(r)) refuse(r, "nothing behind #;", true);
    } else if (r->end - r->at >= 2 && r->at[0] == '#' && r->at[1] == '|') {
      const char* const close = memmem(r->at + 2, (size_t)(r->end - r->at) - 2, "|#", 2);
      if (!close) refuse(r, "a comment #| that does not end", true);
      r->at = close ? close + 2 : r->end;
    } else {
      return;
    }
  }
}

static value read_list(reader* r) {
  value made = &nil, *last = &made;
  for (;;) {
    skip_space(r);
    if (r->at == r->end) return refuse(r, "a list that does not end", true);
    if (*r->at == ')') {
      ++r->at;
      return made;
    }
    if (*r->at == '.' && r->at + 1 < r->end && delimits(r->at[1]) && made != &nil) {
      ++r->at;
      *last = read_any(r);
      if (!*last) return refuse(r, "nothing behind the dot of a list", true);
      skip_space(r);
      if (r->at == r->end) return refuse(r, "a list that does not end", true);
      if (*r->at++ != ')') return refuse(r, "more than one datum behind the dot of a list", false);
      return made;
    }
    const value item = read_any(r);
    if (!item) return NULL;
    *last = cons(item, &nil);
    last = &((pair*)*last)->rest;
  }
}

static value read_string(reader* r) {
  text made = {0};
  while (r->at < r->end && *r->at != '"') {
    char c = *r->at++;
    if (c == '\\') {
      if (r->at == r->end) break;
      c = *r->at++;
      switch (c) {
        case 'n': c = '\n'; break;
        case 'r': c = '\r'; break;
        case 't': c = '\t'; break;
        case '0': c = 0; break;
        case '"':
        case '\\': break;
        case '\n':
          while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) ++r->at;
          continue;
        case 'x': {
          char* stop = NULL;
          const unsigned long code = strtoul(r->at, &stop, 16);
          if (stop >= r->end) return refuse(r, "a string that does not end", true);
          if (*stop != ';' || code > 255) return refuse(r, "\\x in a string without a byte and a semicolon", false);
          r->at = stop + 1;
          c = (char)code;
          break;
        }
        default: return refuse(r, "an unknown letter behind \\ in a string", false);
      }
    }
    append(&made, &c, 1);
  }
  if (r->at == r->end) return refuse(r, "a string that does not end", true);
  ++r->at;
  return string_of(made.bytes, made.length);
}

static value read_character(reader* r) {
  static const struct {
    const char* name;
    unsigned code;
  } names[] = {{"space", ' '}, {"newline", '\n'}, {"tab", '\t'},  {"return", '\r'},
               {"nul", 0},     {"null", 0},       {"delete", 127}};
  const char* const begin = r->at++;
  while (r->at < r->end && !delimits(*r->at)) ++r->at;
  const size_t length = (size_t)(r->at - begin);
  if (length == 1) return from_character((unsigned char)*begin);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strlen(names[i].name) == length && memcmp(names[i].name, begin, length) == 0)
      return from_character(names[i].code);
  return refuse(r, "an unknown name behind #\\", false);
}

value number_of(const char* word, size_t length) {
  if (length == 0 || !(isdigit((unsigned char)word[length - 1]) || word[length - 1] == '.')) return NULL;
  char few[64], *stop = NULL;
  char* const copy = length < sizeof few ? few : GC_malloc_atomic(length + 1);
  memcpy(copy, word, length);
  copy[length] = 0;
  const char first_digit = copy[copy[0] == '-' || copy[0] == '+'];
  if (!isdigit((unsigned char)first_digit) && first_digit != '.') return NULL;
  if (strspn(copy, "0123456789+-.eE") != length) return NULL;
  errno = 0;
  const long long integer = strtoll(copy, &stop, 10);
  if (*stop == 0 && errno == 0 && to_integer(from_integer(integer)) == integer) return from_integer(integer);
  const double number = strtod(copy, &stop);
  return *stop == 0 && stop != copy ? real_of(number) : NULL;
}

static value read_word(reader* r) {
  const char* const begin = r->at;
  while (r->at < r->end && !delimits(*r->at)) ++r->at;
  const size_t length = (size_t)(r->at - begin);
  if (*begin == '#') {
    if ((length == 2 && begin[1] == 't') || (length == 5 && memcmp(begin, "#true", 5) == 0)) return &yes;
    if ((length == 2 && begin[1] == 'f') || (length == 6 && memcmp(begin, "#false", 6) == 0)) return &no;
    return refuse(r, "an unknown word behind #", false);
  }
  if (memchr(begin, 0, length)) return refuse(r, "a zero byte in a word", false);
  const value number = number_of(begin, length);
  return number ? number : symbol_named(begin, length);
}

static value read_quoted(reader* r, const char* name, int length) {
  r->at += length;
  const value quoted = read_any(r);
  return quoted ? list2(symbol_of(name), quoted) : refuse(r, "nothing behind a quote", true);
}

static value read_vector(reader* r) {
  r->at += 2;
  const value items = read_list(r);
  if (!items) return NULL;
  const int length = length_of(items);
  if (length < 0) return refuse(r, "a dot in a vector", false);
  vector* const made = (vector*)vector_of(t_vector, (size_t)length, &nil);
  value item = items;
  for (int i = 0; i < length; ++i, item = rest(item)) made->items[i] = first(item);
  return (value)made;
}

static value read_form(reader* r) {
  const char next = r->end - r->at > 1 ? r->at[1] : 0;
  switch (*r->at) {
    case '(': ++r->at; return read_list(r);
    case ')': return refuse(r, "a ) without its (", false);
    case '"': ++r->at; return read_string(r);
    case '\'': return read_quoted(r, "quote", 1);
    case '`': return read_quoted(r, "quasiquote", 1);
    case ',': return next == '@' ? read_quoted(r, "unquote-splicing", 2) : read_quoted(r, "unquote", 1);
    case '#':
      if (next == '(') return read_vector(r);
      if (next == '\\' && r->end - r->at > 2) {
        r->at += 2;
        return read_character(r);
      }
      return read_word(r);
    default: return read_word(r);
  }
}

static value read_any(reader* r) {
  /* before skip_space, which reads what stands behind #; and so calls this function */
  if (++r->depth > 1000 || stack_is_short()) return refuse(r, "lists within lists, too deep", false);
  skip_space(r);
  const value made = r->error || r->at == r->end ? NULL : read_form(r);
  --r->depth;
  return made;
}

value read_datum(const char** at, const char* end, const char** error, bool* unfinished) {
  reader r = {.at = *at, .end = end};
  const value made = read_any(&r);
  *at = r.at;
  *error = r.error;
  *unfinished = r.unfinished;
  return made;
}
