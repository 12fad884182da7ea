/* A small Scheme on fibers and Boehm's collector. Its fibers run in parallel on all cores and share one heap.
 *
 * Of the library only <ulexite/interop/ulexite.h> and <ulexite/interop/boehm.h> are used. docs/embedding-lisp.md tells
 * how the parts stand to each other.
 *
 * A value is a pointer to an object, or a small integer or a character in the pointer's low bits. What several fibers
 * share is read and written whole. So a race between two gives one of their values, and never harms the interpreter. */
#ifndef LISP_H
#define LISP_H

#include <ulexite/interop/ulexite.h>

#ifndef GC_THREADS
#define GC_THREADS
#endif
#define GC_NO_THREAD_REDIRECTS
#include <gc/gc.h>

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----------------------------------------------------------------------------------------------------------- values */
typedef enum {
  t_constant, /* the empty list, true, false and the like */
  t_pair,
  t_symbol,
  t_alias, /* a name that a macro has brought in */
  t_string,
  t_real,
  t_vector,
  t_table,
  t_closure,
  t_primitive,
  t_macro,
  t_values,
  t_record_type,
  t_record,
  t_error,
  t_escape,
  t_parameter,
  t_fiber,
  t_channel,
  t_mutex,
  t_socket,
  t_integer, /* these two are in the pointer */
  t_character,
} type;

typedef struct object {
  type is;
} object;
typedef object* value;
typedef struct fiber fiber;
typedef struct scope scope;
typedef struct primitive primitive;

typedef struct {
  type is;
  value first, rest;
} pair;
typedef struct symbol {
  type is;
  const struct special* special; /* how the compiler treats a list that begins with it; or null */
  value global;                  /* null: unbound */
  struct symbol* next;           /* in the table of symbols */
  char name[];
} symbol;
typedef struct {
  type is;
  value name;        /* a symbol or an alias */
  scope* definition; /* where the macro stands, and so where the name is looked up; null: globally */
} alias;
typedef struct {
  type is;
  size_t length;
  char bytes[]; /* and a zero */
} string;
typedef struct {
  type is;
  double number;
} real;
typedef struct {
  type is;
  size_t length;
  value items[];
} vector; /* and what `values` returns */
typedef struct {
  type is;
  value name, fields; /* a symbol, and a list of them */
} record_type;
typedef struct {
  type is;
  record_type* of;
  value fields[];
} record;
typedef struct {
  type is;
  value message, irritants;
} error_object;
/* `count` values at `arguments`. May return what tail_call gives. */
typedef value (*function)(fiber* in, const primitive* self, int count, value* arguments);
struct primitive {
  type is;
  const char* name;
  int least, most; /* arguments; most -1: any number */
  function call;
  value data;
  int index;
};

extern object nil, yes, no, unspecified, end_of_file;

static inline bool is_integer(value v) { return (intptr_t)v & 1; }
static inline bool is_character(value v) { return ((intptr_t)v & 7) == 2; }
static inline type type_of(value v) { return is_integer(v) ? t_integer : is_character(v) ? t_character : v->is; }
static inline bool is(value v, type wanted) { return ((intptr_t)v & 7) == 0 && v->is == wanted; }
static inline value from_integer(intptr_t number) { return (value)(((uintptr_t)number << 1) | 1); }
static inline intptr_t to_integer(value v) { return (intptr_t)v >> 1; }
static inline value from_character(unsigned c) { return (value)(((uintptr_t)c << 3) | 2); }
static inline unsigned to_character(value v) { return (unsigned)((uintptr_t)v >> 3); }
static inline value from_bool(bool b) { return b ? &yes : &no; }
static inline bool is_name(value v) { return is(v, t_symbol) || is(v, t_alias); }
/* What fibers share: a reader of a new object sees it whole. */
static inline value load(value* from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
static inline void store(value* to, value v) { __atomic_store_n(to, v, __ATOMIC_RELEASE); }
static inline value first(value p) { return load(&((pair*)p)->first); }
static inline value rest(value p) { return load(&((pair*)p)->rest); }
static inline value second(value p) { return first(rest(p)); }
static inline value third(value p) { return first(rest(rest(p))); }

/* object.c: none of these returns when memory is out: the process ends. */
void* allocate(type is, size_t size);
void* allocate_plain(type is, size_t size); /* not scanned, not zeroed */
value cons(value first, value rest);
value symbol_named(const char* name, size_t length);
value symbol_of(const char* name);
value string_of(const char* bytes, size_t length);
value string_from(const char* text);
value real_of(double number);
value vector_of(type is, size_t length, value fill);
value list_of(int count, const value* items);
value list2(value a, value b);
value list3(value a, value b, value c);
/* -1: not a list. */
int length_of(value list);
/* What one walk over the list finds, because another fiber may change the list meanwhile. Null: not a list. */
value* items_of(value list, int* count);
/* eqv?, equal?; a number that is equal for what is equal. */
bool same(value a, value b);
bool equal(fiber* by, value a, value b); /* two circles are equal if what they unroll to is */
uintptr_t hash_of(value v);

/* reader.c: one datum of [*at, end). Null: there is none; `*error` tells why, if it is not just the end. `*unfinished`:
 * more text would help. */
value read_datum(const char** at, const char* end, const char** error, bool* unfinished);
/* Null: the word is not a number. */
value number_of(const char* word, size_t length);
/* printer.c: as `write` does, or as `display`. */
string* text_of(value v, bool written);
typedef struct {
  char* bytes;
  size_t length, room;
  int values; /* that append_value has met */
} text;
void append(text* to, const char* bytes, size_t length);
void append_value(text* to, value v, bool written);

/* ------------------------------------------------------------------------------------------------------- evaluation */
typedef struct frame {
  struct frame* outer;
  value slots[];
} frame;
typedef struct node {
  value (*run)(const struct node* self, frame* in, fiber* by);
} node;
/* A lambda expression. */
typedef struct {
  const char* name; /* or null */
  int parameters;   /* without that for the rest */
  bool rest;
  int slots; /* parameters and inner definitions */
  const node* body;
} lambda;
typedef struct {
  type is;
  const lambda* of;
  frame* outer;
} closure;
typedef struct {
  type is;
  value literals, rules; /* rules: a list of (pattern template) */
  value ellipsis;
  scope* definition;
} macro;

/* Where a call of call/ec, or a fiber, can be left to. */
typedef struct escape {
  type is;
  jmp_buf place;
  fiber* of;
  struct escape* outer; /* that its fiber can be left to after this one */
  bool over;
  value result;
  value winds, handlers, parameters; /* of the fiber, as they were */
} escape;

/* What each fiber carries with it. */
struct fiber {
  const lambda* next; /* after tail_call: what to run, and in which frame */
  frame* next_frame;
  escape* innermost;
  value winds;                         /* a list of thunks: what leaving them must call */
  value handlers;                      /* a list of procedures: with-exception-handler */
  value parameters;                    /* a list of (parameter . value) */
  const char *stack_end, *reserve_end; /* where recursion ends; where it does while that error is raised */
  int calls;                           /* left until a safepoint */
};

/* compile.c: of an expression at the top level. Raises an error. */
const node* compile(fiber* by, value expression);
/* A name without what macros have put around it; in all of an expression. */
value plain(value expression);
/* What it is there: false if it is not a local variable. */
bool is_local(value name, const scope* in);
/* syntax.c */
value make_macro(fiber* by, value rules, scope* definition);
value expand(fiber* by, const macro* with, value form, const scope* in);

/* evaluate.c: one form after another, at the top level. */
value evaluate(fiber* by, value form);
value evaluate_text(fiber* by, const char* bytes, size_t length, const char* name);
value apply(fiber* by, value procedure, int count, value* arguments);
/* The same as the last thing a primitive does. */
value tail_call(fiber* by, value procedure, int count, value* arguments);
/* Runs what tail_call has left. */
value finish(fiber* by, value result);
extern object tail;
node* constant_node(value v);
node* local_node(int depth, int index, value name);
node* set_local_node(int depth, int index, const node* of);
node* global_node(symbol* name);
node* set_global_node(symbol* name, const node* of, bool define);
node* if_node(const node* condition, const node* then, const node* otherwise);
node* sequence_node(int count, const node** parts);
node* lambda_node(const lambda* of);
node* let_node(const lambda* of, int count, const node** values);
/* What tail calls within `of` have left is done here. */
node* finish_node(const node* of);
node* call_node(bool tail, const node* operator, int count, const node** operands);

/* control.c: errors, escapes, dynamic extents. */
_Noreturn void fail_too_deep(fiber* by);
/* For all that recurses as deep as a program or its data. */
static inline void check_stack(fiber* by) {
  if (__builtin_expect((const char*)__builtin_frame_address(0) < by->stack_end, 0)) fail_too_deep(by);
}
/* The same for what has no fiber to raise an error in: only the stack that check_stack keeps free is left. */
bool stack_is_short(void);
_Noreturn void raise_value(fiber* by, value condition);
/* The irritant may be null. */
_Noreturn void fail(fiber* by, const char* message, value irritant);
void check_type(fiber* by, const primitive* self, value v, type wanted);
intptr_t index_argument(fiber* by, const primitive* self, value v, intptr_t most);
/* Runs body(argument) in a fiber of Scheme. False: it ended with an error, which is its result. */
bool run_protected(fiber* by, value (*body)(fiber* by, void* argument), void* argument, value* result);
fiber* make_fiber(value parameters);

/* --------------------------------------------------------------------------------------------------------- built in */
#define UNUSED __attribute__((unused))
#define PRIMITIVE(name) \
  static value name(UNUSED fiber* by, UNUSED const primitive* self, UNUSED int count, UNUSED value* arguments)
typedef struct {
  const char* name;
  int least, most;
  function call;
} definition;
void define(const definition* definitions, size_t count);
#define DEFINE(table) define(table, sizeof(table) / sizeof *(table))
value make_primitive(const char* name, int least, int most, function call, value data, int index);
void define_numbers(void);
void define_data(void);
void define_strings(void);
void define_tables(void);
void define_control(void);
void define_fibers(void);
void define_sockets(void);
void define_special_forms(void);
extern const char prelude[]; /* what is written in Scheme itself: prelude.scm */
/* A channel, mutex, handle or socket that is no longer named is given back by this, at places where no lock is held. */
void give_back_garbage(void);
/* The text of a file, read by a thread that may block. */
string* file_text(fiber* by, const char* path);
extern value command_line_arguments;

#endif
