/* syntax-rules. Names that a template brings in become aliases, so they neither capture a user's variables nor are
 * captured. This is renaming, as in Clinger and Rees, "Macros that work" (1991). */
#include "scope.h"

#include <string.h>

value make_macro(fiber* by, value rules, scope* definition) {
  macro* const made = allocate(t_macro, sizeof *made);
  made->ellipsis = symbol_of("...");
  made->definition = definition;
  if (is(rest(rules), t_pair) && is_name(second(rules))) { /* its own word for the ellipsis */
    made->ellipsis = second(rules);
    rules = rest(rules);
  }
  if (length_of(rules) < 2 || length_of(second(rules)) < 0) fail(by, "syntax-rules without literals", plain(rules));
  made->literals = second(rules);
  made->rules = rest(rest(rules));
  for (value r = made->rules; r != &nil; r = rest(r))
    if (length_of(first(r)) != 2 || !is(first(first(r)), t_pair))
      fail(by, "a rule is (pattern template)", plain(first(r)));
  return (value)made;
}

typedef struct {
  fiber* by;
  const macro* of;
  const scope* in;
  value renamed; /* a list of (name . alias): one alias of each name for one expansion */
} expansion;

static bool is_ellipsis(const expansion* e, value v) { return is_name(v) && plain(v) == plain(e->of->ellipsis); }
static bool before_ellipsis(const expansion* e, value list) {
  return is(rest(list), t_pair) && is_ellipsis(e, second(list));
}

static bool is_wildcard(value name) { return strcmp(((symbol*)plain(name))->name, "_") == 0; }

static bool is_literal(const expansion* e, value name) {
  for (value l = e->of->literals; l != &nil; l = rest(l))
    if (first(l) == name) return true;
  return false;
}

static value find(value name, value bindings) {
  for (; bindings != &nil; bindings = rest(bindings))
    if (first(first(bindings)) == name) return first(bindings);
  return NULL;
}

static bool match(const expansion* e, value pattern, value form, value* bindings);

/* The names of a pattern, in front of `names`. */
static value names_of(const expansion* e, value pattern, value names) {
  check_stack(e->by);
  if (is_name(pattern)) {
    const bool binds = !is_literal(e, pattern) && !is_ellipsis(e, pattern) && !is_wildcard(pattern);
    return binds ? cons(pattern, names) : names;
  }
  if (is(pattern, t_pair)) return names_of(e, first(pattern), names_of(e, rest(pattern), names));
  return names;
}

/* Pairs at the beginning of what may end with a dot. */
static int pairs_of(value list) {
  int count = 0;
  for (; is(list, t_pair); list = rest(list)) ++count;
  return count;
}

/* In front of the list of what a name that repeats has matched. No program has this object, so what it wrote itself is
 * never taken for such a list. */
static object repeats = {t_constant};
static bool does_repeat(value bound) { return is(rest(bound), t_pair) && first(rest(bound)) == &repeats; }

/* (p ... more): as many as leave enough for `more`. Each name of p is bound to a list of what it matched. */
static bool match_ellipsis(const expansion* e, value pattern, value form, value* bindings) {
  const value repeated = first(pattern), more = rest(rest(pattern));
  value matches = &nil, *last = &matches;
  for (int count = pairs_of(form) - pairs_of(more); count > 0; --count, form = rest(form)) {
    value one = &nil;
    if (!match(e, repeated, first(form), &one)) return false;
    *last = cons(one, &nil);
    last = &((pair*)*last)->rest;
  }
  for (value names = names_of(e, repeated, &nil); names != &nil; names = rest(names)) {
    value all = &nil, *end = &all;
    for (value m = matches; m != &nil; m = rest(m)) {
      *end = cons(rest(find(first(names), first(m))), &nil);
      end = &((pair*)*end)->rest;
    }
    *bindings = cons(cons(first(names), cons(&repeats, all)), *bindings);
  }
  return match(e, more, form, bindings);
}

static bool match(const expansion* e, value pattern, value form, value* bindings) {
  check_stack(e->by);
  if (is_name(pattern)) {
    if (is_literal(e, pattern)) return is_name(form) && plain(form) == plain(pattern) && !is_local(form, e->in);
    if (!is_wildcard(pattern)) *bindings = cons(cons(pattern, form), *bindings);
    return true;
  }
  if (!is(pattern, t_pair)) return equal(e->by, pattern, form);
  if (before_ellipsis(e, pattern)) return match_ellipsis(e, pattern, form, bindings);
  return is(form, t_pair) && match(e, first(pattern), first(form), bindings) &&
         match(e, rest(pattern), rest(form), bindings);
}

static value rename_in(expansion* e, value name) {
  const value known = find(name, e->renamed);
  if (known) return rest(known);
  alias* const made = allocate(t_alias, sizeof *made);
  made->name = name;
  made->definition = e->of->definition;
  e->renamed = cons(cons(name, (value)made), e->renamed);
  return (value)made;
}

static value fill(expansion* e, value template, value bindings);

/* `repeated` once for each item of those of its names that repeat, followed by `more`. */
static value fill_ellipsis(expansion* e, value repeated, value bindings, value more) {
  value names = &nil;
  int count = -1;
  for (value n = names_of(e, repeated, &nil); n != &nil; n = rest(n)) {
    const value bound = find(first(n), bindings);
    if (!bound || !does_repeat(bound)) continue;
    names = cons(bound, names);
    const int items = length_of(rest(rest(bound)));
    if (items > count) count = items;
  }
  if (count < 0) fail(e->by, "an ellipsis behind what does not repeat", plain(repeated));
  value* const made = GC_malloc((size_t)(count + 1) * sizeof *made);
  for (int i = 0; i < count; ++i) {
    value inner = bindings;
    for (value n = names; n != &nil; n = rest(n)) {
      value item = rest(rest(first(n)));
      for (int k = 0; k < i && is(item, t_pair); ++k) item = rest(item);
      if (is(item, t_pair)) inner = cons(cons(first(first(n)), first(item)), inner);
    }
    made[i] = fill(e, repeated, inner);
  }
  while (count-- > 0) more = cons(made[count], more);
  return more;
}

static value fill(expansion* e, value template, value bindings) {
  check_stack(e->by);
  if (is_name(template)) {
    const value bound = find(template, bindings);
    if (bound && does_repeat(bound)) fail(e->by, "a name that repeats, without its ellipsis", plain(template));
    return bound ? rest(bound) : rename_in(e, template);
  }
  if (!is(template, t_pair)) return template;
  if (is_ellipsis(e, first(template)) && is(rest(template), t_pair)) { /* (... ...) */
    const macro literally = {t_macro, e->of->literals, &nil, &nil, e->of->definition};
    expansion inner = {e->by, &literally, e->in, e->renamed};
    return fill(&inner, second(template), bindings);
  }
  if (before_ellipsis(e, template))
    return fill_ellipsis(e, first(template), bindings, fill(e, rest(rest(template)), bindings));
  return cons(fill(e, first(template), bindings), fill(e, rest(template), bindings));
}

value expand(fiber* by, const macro* with, value form, const scope* in) {
  expansion e = {by, with, in, &nil};
  for (value rules = with->rules; rules != &nil; rules = rest(rules)) {
    value bindings = &nil;
    if (match(&e, rest(first(first(rules))), rest(form), &bindings)) return fill(&e, second(first(rules)), bindings);
  }
  fail(by, "no rule of the macro matches", plain(form));
}
