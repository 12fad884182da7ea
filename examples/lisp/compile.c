/* From data to nodes: names become places. */
#include "scope.h"

#include <string.h>

/* `left`: pairs and vectors that it may still visit. What lies further stays as it is, because it may be a circle. */
static value plain_within(value expression, int* left);

static value plain_list(value list, int* left) {
  value made = &nil, *last = &made, at = list;
  bool changed = false;
  for (; is(at, t_pair) && *left > 0; at = rest(at)) {
    --*left;
    const value item = first(at), now = plain_within(item, left);
    changed = changed || now != item;
    *last = cons(now, &nil);
    last = &((pair*)*last)->rest;
  }
  *last = is(at, t_pair) ? at : plain_within(at, left);
  return changed || *last != at ? made : list;
}

static value plain_within(value expression, int* left) {
  while (is(expression, t_alias)) expression = ((alias*)expression)->name;
  if (!is(expression, t_pair) && !is(expression, t_vector)) return expression;
  if (*left <= 0 || stack_is_short()) return expression;
  if (is(expression, t_pair)) return plain_list(expression, left);
  --*left;
  const vector* const old = (vector*)expression;
  vector* const made = (vector*)vector_of(t_vector, old->length, &nil);
  for (size_t i = 0; i < old->length; ++i) made->items[i] = plain_within(old->items[i], left);
  return (value)made;
}

value plain(value expression) {
  int left = 1000000;
  return plain_within(expression, &left);
}

int add_name(scope* to, value name) {
  for (int i = 0; i < to->count; ++i)
    if (to->names[i] == name) return i;
  if (to->count == to->room) {
    to->room = 2 * to->room + 4;
    to->names = GC_realloc(to->names ? to->names : GC_malloc(16), (size_t)to->room * sizeof(value));
  }
  to->names[to->count] = name;
  return to->count++;
}

/* A name that a macro has brought in is first looked for as such, because the macro may have bound it there. Then it is
 * looked for as what it stands for, from where the macro was defined. */
meaning meaning_of(value name, scope* in) {
  meaning m = {.kind = m_local};
  const scope* from = in;
  for (;;) {
    bool visible = false;
    m.depth = 0;
    for (scope* s = in; s; s = s->outer, ++m.depth) {
      visible = visible || s == from;
      if (!visible) continue;
      for (m.index = s->count - 1; m.index >= 0; --m.index)
        if (s->names[m.index] == name) return m;
      for (value macros = s->macros; macros != &nil; macros = rest(macros))
        if (first(first(macros)) == name) return (meaning){.kind = m_macro, .macro = rest(first(macros))};
    }
    if (!is(name, t_alias)) break;
    from = ((alias*)name)->definition;
    name = ((alias*)name)->name;
  }
  m.global = (symbol*)name;
  const value now = load(&m.global->global);
  if (now && is(now, t_macro)) return (meaning){.kind = m_macro, .macro = now};
  m.kind = m.global->special && !now ? m_special : m_global;
  return m;
}

bool is_local(value name, const scope* in) { return meaning_of(name, (scope*)in).kind == m_local; }

bool begins_with(value form, scope* in, const char* name) {
  if (!is(form, t_pair) || !is_name(first(form))) return false;
  const meaning m = meaning_of(first(form), in);
  return m.kind == m_special && strcmp(m.global->name, name) == 0;
}

value expand_head(fiber* by, value form, scope* in) {
  while (is(form, t_pair) && is_name(first(form))) {
    const meaning m = meaning_of(first(form), in);
    if (m.kind != m_macro) break;
    check_stack(by);
    form = expand(by, (macro*)m.macro, form, in);
  }
  return form;
}

static const node* compile_name(value name, scope* in, fiber* by) {
  const meaning m = meaning_of(name, in);
  switch (m.kind) {
    case m_local: return local_node(m.depth, m.index, plain(name));
    case m_global: return global_node(m.global);
    default: fail(by, "a word of the syntax, not a variable", plain(name));
  }
}

static const node* compile_call(fiber* by, value form, scope* in, bool is_tail) {
  const int count = length_of(form) - 1;
  if (count < 0) fail(by, "a call must be a list", plain(form));
  const node** const operands = GC_malloc((size_t)(count + 1) * sizeof *operands);
  value operand = rest(form);
  for (int i = 0; i < count; ++i, operand = rest(operand)) operands[i] = compile_in(by, first(operand), in, false);
  return call_node(is_tail, compile_in(by, first(form), in, false), count, operands);
}

static lambda* compile_lambda(fiber* by, value parameters, value body, scope* outer, const char* name) {
  scope* const in = GC_malloc(sizeof *in);
  *in = (scope){.outer = outer, .macros = &nil};
  lambda* const made = GC_malloc(sizeof *made);
  made->name = name;
  for (; is(parameters, t_pair); parameters = rest(parameters)) {
    if (!is_name(first(parameters))) fail(by, "a parameter must be a name", plain(first(parameters)));
    if (add_name(in, first(parameters)) != made->parameters++) fail(by, "a parameter twice", plain(first(parameters)));
  }
  if (parameters != &nil) {
    if (!is_name(parameters)) fail(by, "a parameter must be a name", plain(parameters));
    made->rest = true;
    add_name(in, parameters);
  }
  made->body = compile_body(by, body, in);
  made->slots = in->count;
  return made;
}

/* ((lambda (a b) ...) x y), which `let` becomes, needs no closure. Null: it is not of that kind. */
static const node* compile_let(fiber* by, value form, scope* in) {
  if (!begins_with(first(form), in, "lambda")) return NULL;
  const value of = first(form);
  const int count = length_of(form) - 1;
  if (length_of(of) < 3 || length_of(second(of)) != count) return NULL;
  const node** const values = GC_malloc((size_t)(count + 1) * sizeof *values);
  value operand = rest(form);
  for (int i = 0; i < count; ++i, operand = rest(operand)) values[i] = compile_in(by, first(operand), in, false);
  return let_node(compile_lambda(by, second(of), rest(rest(of)), in, NULL), count, values);
}

const node* compile_in(fiber* by, value form, scope* in, bool is_tail) {
  check_stack(by);
  form = expand_head(by, form, in);
  if (is_name(form)) return compile_name(form, in, by);
  if (form == &nil) fail(by, "a call without a procedure", NULL);
  if (!is(form, t_pair)) return constant_node(form);
  if (is_name(first(form))) {
    const meaning m = meaning_of(first(form), in);
    if (m.kind == m_special) return m.global->special->compile(by, form, in, is_tail);
  }
  const node* const let = compile_let(by, form, in);
  if (!let) return compile_call(by, form, in, is_tail);
  return is_tail ? let : finish_node(let);
}

static const node* compile_sequence(fiber* by, value forms, scope* in, bool is_tail) {
  const int count = length_of(forms);
  if (count < 1) return constant_node(&unspecified);
  const node** const parts = GC_malloc((size_t)count * sizeof *parts);
  for (int i = 0; i < count; ++i, forms = rest(forms))
    parts[i] = compile_in(by, first(forms), in, is_tail && i == count - 1);
  return count == 1 ? parts[0] : sequence_node(count, parts);
}

static void check_form(fiber* by, value form, int least, int most) {
  const int length = length_of(form);
  if (length < least || (most >= 0 && length > most)) fail(by, "wrong syntax", plain(form));
}

/* (define (name . parameters) ...) is (define name (lambda parameters ...)): the name, and what it is. */
static value defined_name(fiber* by, value form) {
  check_form(by, form, 2, -1);
  value name = second(form);
  while (is(name, t_pair)) name = first(name);
  if (!is_name(name)) fail(by, "define without a name", plain(form));
  return name;
}

static const node* compile_definition(fiber* by, value form, scope* in) {
  value target = second(form);
  if (!is(target, t_pair)) {
    check_form(by, form, 3, 3);
    const value expression = expand_head(by, third(form), in);
    if (begins_with(expression, in, "lambda") && length_of(expression) >= 3)
      return lambda_node(
          compile_lambda(by, second(expression), rest(rest(expression)), in, ((symbol*)plain(target))->name));
    return compile_in(by, expression, in, false);
  }
  check_form(by, form, 3, -1);
  if (is(first(target), t_pair)) fail(by, "a definition of a procedure that gives a procedure", plain(form));
  return lambda_node(compile_lambda(by, rest(target), rest(rest(form)), in, ((symbol*)plain(first(target)))->name));
}

static value macro_of(fiber* by, value form, scope* in) {
  check_form(by, form, 3, 3);
  const value rules = third(form);
  if (!is_name(second(form)) || !is(rules, t_pair) || plain(first(rules)) != symbol_of("syntax-rules"))
    fail(by, "define-syntax needs a name and syntax-rules", plain(form));
  return make_macro(by, rules, in);
}

/* First all names, because they see each other; then what they are. A list of forms, whose macros are expanded. */
static value declare(fiber* by, value body, scope* in) {
  value made = &nil, *last = &made;
  while (is(body, t_pair)) {
    const value form = expand_head(by, first(body), in);
    body = rest(body);
    if (begins_with(form, in, "begin")) {
      check_form(by, form, 1, -1);
      value spliced = body;
      const int count = length_of(form) - 1;
      value* const parts = GC_malloc((size_t)(count + 1) * sizeof *parts);
      value part = rest(form);
      for (int i = 0; i < count; ++i, part = rest(part)) parts[i] = first(part);
      for (int i = count; i-- > 0;) spliced = cons(parts[i], spliced);
      body = spliced;
      continue;
    }
    if (begins_with(form, in, "define-syntax")) {
      const value macro = macro_of(by, form, in); /* first, because it checks the form */
      in->macros = cons(cons(second(form), macro), in->macros);
      continue;
    }
    if (begins_with(form, in, "define")) add_name(in, defined_name(by, form));
    *last = cons(form, &nil);
    last = &((pair*)*last)->rest;
  }
  return made;
}

const node* compile_body(fiber* by, value body, scope* in) {
  check_stack(by);
  value forms = declare(by, body, in);
  const int count = length_of(forms);
  if (count < 1) fail(by, "a body without an expression", plain(body));
  const node** const parts = GC_malloc((size_t)count * sizeof *parts);
  for (int i = 0; i < count; ++i, forms = rest(forms)) {
    const value form = first(forms);
    parts[i] = begins_with(form, in, "define")
                   ? set_local_node(0, add_name(in, defined_name(by, form)), compile_definition(by, form, in))
                   : compile_in(by, form, in, i == count - 1);
  }
  return count == 1 ? parts[0] : sequence_node(count, parts);
}

const node* compile(fiber* by, value expression) { return compile_in(by, expression, NULL, false); }

/* ---------------------------------------------------------------------------------------------------- special forms */
static const node* special_quote(fiber* by, value form, scope* in, bool is_tail) {
  (void)in, (void)is_tail;
  check_form(by, form, 2, 2);
  return constant_node(plain(second(form)));
}

static const node* special_if(fiber* by, value form, scope* in, bool is_tail) {
  check_form(by, form, 3, 4);
  const value otherwise = rest(rest(rest(form)));
  return if_node(compile_in(by, second(form), in, false), compile_in(by, third(form), in, is_tail),
                 otherwise == &nil ? constant_node(&unspecified) : compile_in(by, first(otherwise), in, is_tail));
}

static const node* special_lambda(fiber* by, value form, scope* in, bool is_tail) {
  (void)is_tail;
  check_form(by, form, 3, -1);
  return lambda_node(compile_lambda(by, second(form), rest(rest(form)), in, NULL));
}

static const node* special_begin(fiber* by, value form, scope* in, bool is_tail) {
  return compile_sequence(by, rest(form), in, is_tail);
}

static const node* special_set(fiber* by, value form, scope* in, bool is_tail) {
  (void)is_tail;
  check_form(by, form, 3, 3);
  if (!is_name(second(form))) fail(by, "set! without a name", plain(form));
  const node* const of = compile_in(by, third(form), in, false);
  const meaning m = meaning_of(second(form), in);
  if (m.kind == m_local) return set_local_node(m.depth, m.index, of);
  if (m.kind != m_global) fail(by, "a word of the syntax, not a variable", plain(second(form)));
  return set_global_node(m.global, of, false);
}

/* At the top level; others are seen by compile_body. */
static const node* special_define(fiber* by, value form, scope* in, bool is_tail) {
  (void)is_tail;
  const value name = plain(defined_name(by, form));
  if (in) fail(by, "a definition within an expression", name);
  return set_global_node((symbol*)name, compile_definition(by, form, NULL), true);
}

static const node* special_define_syntax(fiber* by, value form, scope* in, bool is_tail) {
  (void)is_tail;
  if (in) fail(by, "a definition within an expression", plain(form));
  const value made = macro_of(by, form, NULL); /* first, because it checks the form */
  store(&((symbol*)plain(second(form)))->global, made);
  return constant_node(&unspecified);
}

/* A name that means what it means at the top level, whatever stands around it. */
static value global_name(const char* name) {
  alias* const made = allocate(t_alias, sizeof *made);
  made->name = symbol_of(name);
  return (value)made;
}

static value quoted(value v) { return list2(global_name("quote"), v); }

/* `(a ,b ,@c): calls of cons and append. */
static value quasi(fiber* by, value form, scope* in, int depth) {
  if (is(form, t_vector)) {
    const vector* const items = (vector*)form;
    return list2(global_name("list->vector"), quasi(by, list_of((int)items->length, items->items), in, depth));
  }
  if (!is(form, t_pair)) return quoted(form);
  check_stack(by);
  if (begins_with(form, in, "unquote")) {
    check_form(by, form, 2, 2);
    if (depth == 1) return second(form);
    return list3(global_name("list"), quoted(symbol_of("unquote")), quasi(by, second(form), in, depth - 1));
  }
  if (begins_with(form, in, "quasiquote")) {
    check_form(by, form, 2, 2);
    return list3(global_name("list"), quoted(symbol_of("quasiquote")), quasi(by, second(form), in, depth + 1));
  }
  if (depth == 1 && begins_with(first(form), in, "unquote-splicing")) {
    check_form(by, first(form), 2, 2);
    return list3(global_name("append"), second(first(form)), quasi(by, rest(form), in, depth));
  }
  return list3(global_name("cons"), quasi(by, first(form), in, depth), quasi(by, rest(form), in, depth));
}

static const node* special_quasiquote(fiber* by, value form, scope* in, bool is_tail) {
  check_form(by, form, 2, 2);
  return compile_in(by, quasi(by, second(form), in, 1), in, is_tail);
}

static const node* special_unquote(fiber* by, value form, scope* in, bool is_tail) {
  (void)in, (void)is_tail;
  fail(by, "outside of a quasiquote", plain(form));
}

void define_special_forms(void) {
  static const struct {
    const char* name;
    special of;
  } forms[] = {{"quote", {special_quote}},
               {"if", {special_if}},
               {"lambda", {special_lambda}},
               {"begin", {special_begin}},
               {"set!", {special_set}},
               {"define", {special_define}},
               {"define-syntax", {special_define_syntax}},
               {"quasiquote", {special_quasiquote}},
               {"unquote", {special_unquote}},
               {"unquote-splicing", {special_unquote}}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) ((symbol*)symbol_of(forms[i].name))->special = &forms[i].of;
}
