/* Nodes, and how they run. A call in tail position only says what is to be run next: so loops need no stack. */
#include "lisp.h"

#include <string.h>

enum { calls_until_safepoint = 500, few = 8 };

/* All nodes run by this, because any expression within another one may be the one too deep. Its stack need not be that
 * on which it was compiled. */
static value run(const node* n, frame* in, fiber* by) {
  check_stack(by);
  return n->run(n, in, by);
}

static void* node_of(size_t size, value (*how)(const node*, frame*, fiber*)) {
  node* const made = GC_malloc(size);
  made->run = how;
  return made;
}

/* -------------------------------------------------------------------------------------------------------- variables */
typedef struct {
  node base;
  value constant;
} constant_expression;

static value run_constant(const node* n, frame* in, fiber* by) {
  (void)in, (void)by;
  return ((const constant_expression*)n)->constant;
}

node* constant_node(value v) {
  constant_expression* const made = node_of(sizeof *made, run_constant);
  made->constant = v;
  return &made->base;
}

typedef struct {
  node base;
  int depth, index;
  value name;
  const node* of; /* of set! */
} local_expression;

static value* slot_of(const local_expression* l, frame* in) {
  for (int i = l->depth; i > 0; --i) in = in->outer;
  return &in->slots[l->index];
}

static value used(const local_expression* l, value v, fiber* by) {
  if (__builtin_expect(!v, 0)) fail(by, "used before its definition", l->name);
  return v;
}

static value run_local(const node* n, frame* in, fiber* by) {
  const local_expression* const l = (const local_expression*)n;
  return used(l, load(slot_of(l, in)), by);
}
static value run_nearest(const node* n, frame* in, fiber* by) {
  const local_expression* const l = (const local_expression*)n;
  return used(l, load(&in->slots[l->index]), by);
}
static value run_next(const node* n, frame* in, fiber* by) {
  const local_expression* const l = (const local_expression*)n;
  return used(l, load(&in->outer->slots[l->index]), by);
}
static value run_set_local(const node* n, frame* in, fiber* by) {
  const local_expression* const l = (const local_expression*)n;
  const value v = run(l->of, in, by);
  store(slot_of(l, in), v);
  return &unspecified;
}

node* local_node(int depth, int index, value name) {
  local_expression* const made = node_of(sizeof *made, depth == 0 ? run_nearest : depth == 1 ? run_next : run_local);
  made->depth = depth;
  made->index = index;
  made->name = name;
  return &made->base;
}

node* set_local_node(int depth, int index, const node* of) {
  local_expression* const made = node_of(sizeof *made, run_set_local);
  made->depth = depth;
  made->index = index;
  made->of = of;
  return &made->base;
}

typedef struct {
  node base;
  symbol* name;
  const node* of; /* of set! and define */
} global_expression;

static value run_global(const node* n, frame* in, fiber* by) {
  (void)in;
  symbol* const name = ((const global_expression*)n)->name;
  const value v = load(&name->global);
  if (__builtin_expect(!v, 0)) fail(by, "no variable has this name", (value)name);
  return v;
}

static value run_set_global(const node* n, frame* in, fiber* by) {
  const global_expression* const g = (const global_expression*)n;
  const value v = run(g->of, in, by);
  if (!load(&g->name->global)) fail(by, "set! of a variable that is not defined", (value)g->name);
  store(&g->name->global, v);
  return &unspecified;
}

static value run_define(const node* n, frame* in, fiber* by) {
  const global_expression* const g = (const global_expression*)n;
  store(&g->name->global, run(g->of, in, by));
  return &unspecified;
}

node* global_node(symbol* name) {
  global_expression* const made = node_of(sizeof *made, run_global);
  made->name = name;
  return &made->base;
}

node* set_global_node(symbol* name, const node* of, bool definition) {
  global_expression* const made = node_of(sizeof *made, definition ? run_define : run_set_global);
  made->name = name;
  made->of = of;
  return &made->base;
}

/* ---------------------------------------------------------------------------------------------------------- control */
typedef struct {
  node base;
  const node *condition, *then, *otherwise;
} if_expression;

static value run_if(const node* n, frame* in, fiber* by) {
  const if_expression* const i = (const if_expression*)n;
  return run(run(i->condition, in, by) != &no ? i->then : i->otherwise, in, by);
}

node* if_node(const node* condition, const node* then, const node* otherwise) {
  if_expression* const made = node_of(sizeof *made, run_if);
  made->condition = condition;
  made->then = then;
  made->otherwise = otherwise;
  return &made->base;
}

typedef struct {
  node base;
  int count;
  const node** parts;
} sequence;

static value run_sequence(const node* n, frame* in, fiber* by) {
  const sequence* const s = (const sequence*)n;
  for (int i = 0; i < s->count - 1; ++i) run(s->parts[i], in, by);
  return run(s->parts[s->count - 1], in, by);
}

node* sequence_node(int count, const node** parts) {
  sequence* const made = node_of(sizeof *made, run_sequence);
  made->count = count;
  made->parts = parts;
  return &made->base;
}

/* ------------------------------------------------------------------------------------------------------------ calls */
typedef struct {
  node base;
  const lambda* of;
} lambda_expression;

static value run_lambda(const node* n, frame* in, fiber* by) {
  (void)by;
  closure* const made = allocate(t_closure, sizeof *made);
  made->of = ((const lambda_expression*)n)->of;
  made->outer = in;
  return (value)made;
}

node* lambda_node(const lambda* of) {
  lambda_expression* const made = node_of(sizeof *made, run_lambda);
  made->of = of;
  return &made->base;
}

static frame* frame_of(const lambda* l, frame* outer) {
  frame* const made = GC_malloc(sizeof *made + (size_t)l->slots * sizeof(value));
  made->outer = outer;
  return made;
}

_Noreturn static void wrong_count(fiber* by, value procedure, int count) {
  fail(by, "wrong number of arguments", list2(procedure, from_integer(count)));
}

/* The value of a primitive, or `tail` with the closure's body in by->next. */
static value begin_call(fiber* by, value procedure, int count, value* arguments) {
  if (is(procedure, t_primitive)) {
    const primitive* const p = (const primitive*)procedure;
    if (count < p->least || (p->most >= 0 && count > p->most)) wrong_count(by, procedure, count);
    return p->call(by, p, count, arguments);
  }
  if (!is(procedure, t_closure)) fail(by, "not a procedure", procedure);
  const closure* const c = (const closure*)procedure;
  const lambda* const l = c->of;
  if (count < l->parameters || (!l->rest && count > l->parameters)) wrong_count(by, procedure, count);
  frame* const made = frame_of(l, c->outer);
  memcpy(made->slots, arguments, (size_t)l->parameters * sizeof(value));
  if (l->rest) made->slots[l->parameters] = list_of(count - l->parameters, arguments + l->parameters);
  by->next = l;
  by->next_frame = made;
  return &tail;
}

value finish(fiber* by, value result) {
  if (result != &tail) return result;
  do {
    if (--by->calls < 0) {
      by->calls = calls_until_safepoint;
      ulx_safepoint();
    }
    result = run(by->next->body, by->next_frame, by);
  } while (result == &tail);
  return result;
}

value tail_call(fiber* by, value procedure, int count, value* arguments) {
  return begin_call(by, procedure, count, arguments);
}

value apply(fiber* by, value procedure, int count, value* arguments) {
  return finish(by, begin_call(by, procedure, count, arguments));
}

typedef struct {
  node base;
  const node* operator;
  int count;
  const node** operands;
} call;

/* Apart, so that its array does not stay on the stack while a closure's body runs. */
__attribute__((noinline)) static value call_with_array(const call* c, value procedure, frame* in, fiber* by) {
  value own[few];
  value* const arguments = c->count <= few ? own : GC_malloc((size_t)c->count * sizeof(value));
  for (int i = 0; i < c->count; ++i) arguments[i] = run(c->operands[i], in, by);
  return begin_call(by, procedure, c->count, arguments);
}

static value run_tail_call(const node* n, frame* in, fiber* by) {
  const call* const c = (const call*)n;
  const value procedure = run(c->operator, in, by);
  if (!is(procedure, t_closure)) return call_with_array(c, procedure, in, by);
  const lambda* const l = ((closure*)procedure)->of;
  if (l->rest || l->parameters != c->count) return call_with_array(c, procedure, in, by);
  frame* const made = frame_of(l, ((closure*)procedure)->outer);
  for (int i = 0; i < c->count; ++i) made->slots[i] = run(c->operands[i], in, by);
  by->next = l;
  by->next_frame = made;
  return &tail;
}

static value run_call(const node* n, frame* in, fiber* by) { return finish(by, run_tail_call(n, in, by)); }

node* call_node(bool is_tail, const node* operator, int count, const node** operands) {
  call* const made = node_of(sizeof *made, is_tail ? run_tail_call : run_call);
  made->operator= operator;
  made->count = count;
  made->operands = operands;
  return &made->base;
}

typedef struct {
  node base;
  const node* of;
} finishing;

static value run_finish(const node* n, frame* in, fiber* by) {
  return finish(by, run(((const finishing*)n)->of, in, by));
}

node* finish_node(const node* of) {
  finishing* const made = node_of(sizeof *made, run_finish);
  made->of = of;
  return &made->base;
}

typedef struct {
  node base;
  const lambda* of;
  const node** values;
} let_expression;

static value run_let(const node* n, frame* in, fiber* by) {
  const let_expression* const l = (const let_expression*)n;
  frame* const made = frame_of(l->of, in);
  for (int i = 0; i < l->of->parameters; ++i) made->slots[i] = run(l->values[i], in, by);
  return run(l->of->body, made, by);
}

node* let_node(const lambda* of, int count, const node** values) {
  (void)count; /* as many as parameters */
  let_expression* const made = node_of(sizeof *made, run_let);
  made->of = of;
  made->values = values;
  return &made->base;
}
