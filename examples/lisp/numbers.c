/* Exact integers of 62 bits, and reals. What does not fit an integer becomes a real. */
#include "lisp.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_number(value v) { return is_integer(v) || is(v, t_real); }

static double to_real(fiber* by, const primitive* self, value v) {
  if (is_integer(v)) return (double)to_integer(v);
  if (is(v, t_real)) return ((real*)v)->number;
  char words[64];
  snprintf(words, sizeof words, "%s: not a number", self->name);
  fail(by, words, v);
}

static value integer_or_real(__int128 exact) {
  const intptr_t kept = (intptr_t)exact;
  return kept == exact && to_integer(from_integer(kept)) == kept ? from_integer(kept) : real_of((double)exact);
}

/* `index` of these primitives tells which of a family it is. */
enum { add, subtract, multiply };

static value combine(fiber* by, const primitive* self, value a, value b) {
  if (is_integer(a) && is_integer(b)) {
    const __int128 x = to_integer(a), y = to_integer(b);
    return integer_or_real(self->index == add ? x + y : self->index == subtract ? x - y : x * y);
  }
  const double x = to_real(by, self, a), y = to_real(by, self, b);
  return real_of(self->index == add ? x + y : self->index == subtract ? x - y : x * y);
}

PRIMITIVE(arithmetic) {
  value made = self->index == multiply ? from_integer(1) : from_integer(0);
  int i = 0;
  if (count > 1 || (count == 1 && self->index != subtract)) made = arguments[i++];
  if (count == 1 && i == 1) to_real(by, self, made); /* which must be a number */
  for (; i < count; ++i) made = combine(by, self, made, arguments[i]);
  return made;
}

PRIMITIVE(divide) {
  value made = count == 1 ? from_integer(1) : arguments[0];
  for (int i = count == 1 ? 0 : 1; i < count; ++i) {
    const value by_what = arguments[i];
    if (by_what == from_integer(0)) fail(by, "/: division by zero", made);
    if (is_integer(made) && is_integer(by_what) && to_integer(made) % to_integer(by_what) == 0) {
      made = from_integer(to_integer(made) / to_integer(by_what));
    } else {
      made = real_of(to_real(by, self, made) / to_real(by, self, by_what));
    }
  }
  return made;
}

enum { equals, less, greater, at_most, at_least };

static bool ordered(fiber* by, const primitive* self, value a, value b) {
  if (is_integer(a) && is_integer(b)) {
    const intptr_t x = to_integer(a), y = to_integer(b);
    const int order = (x > y) - (x < y);
    const int wanted = self->index;
    return wanted == equals    ? order == 0
           : wanted == less    ? order < 0
           : wanted == greater ? order > 0
           : wanted == at_most ? order <= 0
                               : order >= 0;
  }
  const double x = to_real(by, self, a), y = to_real(by, self, b);
  const int wanted = self->index;
  return wanted == equals    ? x == y
         : wanted == less    ? x < y
         : wanted == greater ? x > y
         : wanted == at_most ? x <= y
                             : x >= y;
}

PRIMITIVE(compare) {
  bool all = true;
  to_real(by, self, arguments[0]);
  for (int i = 1; i < count; ++i) all = ordered(by, self, arguments[i - 1], arguments[i]) && all;
  return from_bool(all);
}

enum { quotient, remainder_of, modulo };

PRIMITIVE(divide_integers) {
  check_type(by, self, arguments[0], t_integer);
  check_type(by, self, arguments[1], t_integer);
  const intptr_t x = to_integer(arguments[0]), y = to_integer(arguments[1]);
  if (y == 0) fail(by, "division by zero", arguments[0]);
  if (self->index == quotient) return integer_or_real((__int128)x / y);
  const intptr_t left = x % y;
  return from_integer(self->index == modulo && left != 0 && (left < 0) != (y < 0) ? left + y : left);
}

enum { rounding_floor, rounding_ceiling, rounding_truncate, rounding_round };

PRIMITIVE(round_number) {
  if (is_integer(arguments[0])) return arguments[0];
  const double x = to_real(by, self, arguments[0]);
  return real_of(self->index == rounding_floor      ? floor(x)
                 : self->index == rounding_ceiling  ? ceil(x)
                 : self->index == rounding_truncate ? trunc(x)
                                                    : nearbyint(x));
}

enum { f_sqrt, f_exp, f_log, f_sin, f_cos };

PRIMITIVE(real_function) {
  const double x = to_real(by, self, arguments[0]);
  switch (self->index) {
    case f_sqrt: {
      const double root = sqrt(x);
      if (!is_integer(arguments[0]) || root != floor(root)) return real_of(root);
      const __int128 whole = (intptr_t)root; /* maybe of a near number, because a real has 53 bits */
      return whole * whole == to_integer(arguments[0]) ? from_integer((intptr_t)whole) : real_of(root);
    }
    case f_exp: return real_of(exp(x));
    case f_log: return real_of(log(x));
    case f_sin: return real_of(sin(x));
    default: return real_of(cos(x));
  }
}

PRIMITIVE(expt) {
  if (is_integer(arguments[0]) && is_integer(arguments[1]) && to_integer(arguments[1]) >= 0) {
    __int128 made = 1;
    const intptr_t base = to_integer(arguments[0]);
    const __int128 most = (__int128)1 << 62;
    intptr_t left = to_integer(arguments[1]);
    for (; left > 0 && made < most && -made < most && (base > 1 || base < -1); --left) made *= base;
    if (left == 0) return integer_or_real(made);
    if (base >= -1 && base <= 1) return from_integer(base == -1 && left % 2 == 0 ? 1 : base);
  }
  return real_of(pow(to_real(by, self, arguments[0]), to_real(by, self, arguments[1])));
}

PRIMITIVE(exact) {
  if (is_integer(arguments[0])) return arguments[0];
  const double x = to_real(by, self, arguments[0]);
  if (x != floor(x) || fabs(x) >= 0x1p61) fail(by, "exact: no exact integer", arguments[0]);
  return from_integer((intptr_t)x);
}
PRIMITIVE(inexact) { return real_of(to_real(by, self, arguments[0])); }
PRIMITIVE(number_test) { return from_bool(is_number(arguments[0])); }
PRIMITIVE(exact_integer_test) { return from_bool(is_integer(arguments[0])); }
PRIMITIVE(integer_test) {
  return from_bool(is_integer(arguments[0]) ||
                   (is(arguments[0], t_real) && ((real*)arguments[0])->number == floor(((real*)arguments[0])->number)));
}

PRIMITIVE(number_to_string) {
  to_real(by, self, arguments[0]);
  const intptr_t radix = count == 2 ? index_argument(by, self, arguments[1], 36) : 10;
  if (radix == 10) return (value)text_of(arguments[0], false);
  check_type(by, self, arguments[0], t_integer);
  if (radix < 2) fail(by, "number->string: radix below 2", arguments[1]);
  char digits[72], *at = digits + sizeof digits;
  uintptr_t left = (uintptr_t)labs(to_integer(arguments[0]));
  do *--at = "0123456789abcdefghijklmnopqrstuvwxyz"[left % (uintptr_t)radix];
  while (left /= (uintptr_t)radix);
  if (to_integer(arguments[0]) < 0) *--at = '-';
  return string_of(at, (size_t)(digits + sizeof digits - at));
}

/* A sign, then digits; no blanks and no prefix. */
static value number_in_radix(const string* s, int radix) {
  size_t i = s->length > 0 && (s->bytes[0] == '-' || s->bytes[0] == '+');
  if (i == s->length) return &no;
  __int128 exact = 0;
  double large = 0; /* the same, if it is no integer of ours */
  for (; i < s->length; ++i) {
    const int c = tolower((unsigned char)s->bytes[i]);
    const int digit = isdigit(c) ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : radix;
    if (digit >= radix) return &no;
    large = large * radix + digit;
    if (large < 0x1p63) exact = exact * radix + digit;
  }
  if (large >= 0x1p63) return real_of(s->bytes[0] == '-' ? -large : large);
  return integer_or_real(s->bytes[0] == '-' ? -exact : exact);
}

PRIMITIVE(string_to_number) {
  check_type(by, self, arguments[0], t_string);
  const string* const s = (string*)arguments[0];
  const intptr_t radix = count == 2 ? index_argument(by, self, arguments[1], 36) : 10;
  if (radix < 2) fail(by, "string->number: radix below 2", arguments[1]);
  if (radix != 10) return number_in_radix(s, (int)radix);
  const value made = number_of(s->bytes, s->length);
  return made ? made : &no;
}

PRIMITIVE(random_integer) {
  check_type(by, self, arguments[0], t_integer);
  const intptr_t below = to_integer(arguments[0]);
  if (below < 1) fail(by, "random-integer: below what? At least 1", arguments[0]);
  uintptr_t number = 0;
  for (int i = 0; i < 3; ++i) number = number << 31 | (uintptr_t)random();
  return from_integer((intptr_t)(number % (uintptr_t)below));
}

void define_numbers(void) {
  static const struct {
    const char* name;
    int least, most;
    function call;
    int index;
  } families[] = {{"+", 0, -1, arithmetic, add},
                  {"-", 1, -1, arithmetic, subtract},
                  {"*", 0, -1, arithmetic, multiply},
                  {"=", 1, -1, compare, equals},
                  {"<", 1, -1, compare, less},
                  {">", 1, -1, compare, greater},
                  {"<=", 1, -1, compare, at_most},
                  {">=", 1, -1, compare, at_least},
                  {"quotient", 2, 2, divide_integers, quotient},
                  {"remainder", 2, 2, divide_integers, remainder_of},
                  {"modulo", 2, 2, divide_integers, modulo},
                  {"floor", 1, 1, round_number, rounding_floor},
                  {"ceiling", 1, 1, round_number, rounding_ceiling},
                  {"truncate", 1, 1, round_number, rounding_truncate},
                  {"round", 1, 1, round_number, rounding_round},
                  {"sqrt", 1, 1, real_function, f_sqrt},
                  {"exp", 1, 1, real_function, f_exp},
                  {"log", 1, 1, real_function, f_log},
                  {"sin", 1, 1, real_function, f_sin},
                  {"cos", 1, 1, real_function, f_cos}};
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i)
    ((symbol*)symbol_of(families[i].name))->global = make_primitive(
        families[i].name, families[i].least, families[i].most, families[i].call, &nil, families[i].index);
  static const definition all[] = {{"/", 1, -1, divide},
                                   {"expt", 2, 2, expt},
                                   {"exact", 1, 1, exact},
                                   {"inexact", 1, 1, inexact},
                                   {"number?", 1, 1, number_test},
                                   {"exact-integer?", 1, 1, exact_integer_test},
                                   {"integer?", 1, 1, integer_test},
                                   {"number->string", 1, 2, number_to_string},
                                   {"string->number", 1, 2, string_to_number},
                                   {"random-integer", 1, 1, random_integer}};
  DEFINE(all);
}
