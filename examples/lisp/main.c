/* lisp_fibers [FILE [ARGUMENT...]]: runs a program in Scheme whose fibers use all cores; without FILE, each expression
 * of the standard input. When it ends, its fibers are asked to stop. */
#include "scope.h"

#include <ulexite/interop/boehm.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

value evaluate(fiber* by, value form) {
  check_stack(by);
  form = expand_head(by, form, NULL);
  if (!begins_with(form, NULL, "begin")) {
    const node* const made = compile(by, form);
    return made->run(made, NULL, by);
  }
  value result = &unspecified;
  for (value at = rest(form); is(at, t_pair); at = rest(at)) result = evaluate(by, first(at));
  return result;
}

value evaluate_text(fiber* by, const char* bytes, size_t length, const char* name) {
  const char *at = bytes, *error = NULL;
  bool unfinished = false;
  value result = &unspecified;
  for (;;) {
    const value form = read_datum(&at, bytes + length, &error, &unfinished);
    if (!form) break;
    result = evaluate(by, form);
  }
  if (!error) return result;
  long line = 1;
  for (const char* c = bytes; c < at; ++c) line += *c == '\n';
  fail(by, error, list2(string_from(name), from_integer(line)));
}

/* ------------------------------------------------------------------------------------------------------------ files */
typedef struct {
  const char* path;
  string* all; /* null: errno tells why */
} reading;

static intptr_t read_all(void* argument) {
  reading* const r = argument;
  FILE* const file = fopen(r->path, "rb");
  if (!file) return errno;
  text made = {0};
  char part[8192];
  for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) append(&made, part, got);
  const int error = ferror(file) ? EIO : 0;
  fclose(file);
  r->all = (string*)string_of(made.bytes, made.length);
  return error;
}

string* file_text(fiber* by, const char* path) {
  reading r = {path, NULL};
  intptr_t error = 0;
  const int refused = ulx_blocking(read_all, &r, &error);
  if (refused || error) fail(by, ulx_strerror(refused ? refused : (int)error), string_from(path));
  return r.all;
}

/* ------------------------------------------------------------------------------------------------ expressions typed */
typedef struct {
  char line[4096];
  bool end;
} typed;

static intptr_t read_typed(void* argument) {
  typed* const t = argument;
  t->end = !fgets(t->line, sizeof t->line, stdin);
  return 0;
}

static value evaluate_datum(fiber* by, void* argument) { return evaluate(by, argument); }

/* One datum after the other, of all that was typed and not yet read. */
static void answer(fiber* by, text* waiting) {
  const char *at = waiting->bytes, *error = NULL;
  bool unfinished = false;
  for (;;) {
    const char* const before = at;
    const value form = read_datum(&at, waiting->bytes + waiting->length, &error, &unfinished);
    if (unfinished) {
      at = before;
      break;
    }
    if (error) printf("error: %s\n", error);
    if (!form) {
      at = waiting->bytes + waiting->length;
      break;
    }
    value result = &unspecified;
    const bool good = run_protected(by, evaluate_datum, form, &result);
    if (!good) {
      printf("error: %s\n", text_of(result, false)->bytes);
    } else if (result != &unspecified) {
      printf("%s\n", text_of(result, true)->bytes);
    }
  }
  waiting->length -= (size_t)(at - waiting->bytes);
  memmove(waiting->bytes, at, waiting->length);
}

static void converse(fiber* by) {
  const bool prompts = isatty(STDIN_FILENO);
  text waiting = {0};
  typed next;
  for (;;) {
    if (prompts) fputs(waiting.length ? "... " : "> ", stdout);
    fflush(stdout);
    if (ulx_blocking(read_typed, &next, NULL) != 0 || next.end) break;
    append(&waiting, next.line, strlen(next.line));
    answer(by, &waiting);
  }
  if (waiting.length) fputs("error: the input ends within an expression\n", stdout);
}

/* ---------------------------------------------------------------------------------------------------------- program */
typedef struct {
  int count;
  char** words;
} command;

static value run_program(fiber* by, void* argument) {
  const command* const given = argument;
  evaluate_text(by, prelude, strlen(prelude), "prelude.scm");
  for (int i = given->count; i-- > 1;)
    command_line_arguments = cons(string_from(given->words[i]), command_line_arguments);
  if (given->count < 2) {
    converse(by);
    return &unspecified;
  }
  const string* const all = file_text(by, given->words[1]);
  return evaluate_text(by, all->bytes, all->length, given->words[1]);
}

static intptr_t start(void* argument) {
  value result = &unspecified;
  const bool good = run_protected(make_fiber(&nil), run_program, argument, &result);
  if (!good) fprintf(stderr, "lisp: %s\n", text_of(result, false)->bytes);
  return good ? 0 : 1;
}

/* A program's own recursion is deeper than that of fibers that serve. */
static intptr_t start_deep(void* argument) {
  ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
  options.stack_size = 64u << 20;
  options.name = "main";
  ulx_fiber* const fiber = ulx_spawn(start, argument, &options);
  intptr_t result = 1;
  if (!fiber) {
    perror("lisp");
    return 1;
  }
  const int error = ulx_join(fiber, ULX_FOREVER, &result);
  if (error) fprintf(stderr, "lisp: %s\n", ulx_strerror(error));
  ulx_fiber_release(fiber);
  return result;
}

int main(int argc, char** argv) {
  ulx_boehm_start();
  GC_set_finalize_on_demand(1);
  define_special_forms();
  define_numbers();
  define_data();
  define_strings();
  define_tables();
  define_control();
  define_fibers();
  define_sockets();
  ulx_hooks hooks = ULX_INIT(ulx_hooks);
  ulx_boehm_fill(&hooks);
  ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
  options.hooks = &hooks;
  options.stack_size = 256 * 1024;
  options.on_deadlock = ULX_DEADLOCK_FAIL;
  options.dump_signal = SIGQUIT;
  ulx_runtime* const runtime = ulx_runtime_new(&options);
  if (!runtime) {
    perror("lisp");
    return 1;
  }
  ulx_boehm_scan(runtime);
  command given = {argc, argv};
  intptr_t result = 1;
  const int error = ulx_runtime_run(runtime, start_deep, &given, &result);
  if (error) fprintf(stderr, "lisp: %s\n", ulx_strerror(error));
  fflush(stdout);
  ulx_boehm_destroy(runtime, ULX_CANCEL, NULL);
  return error ? 1 : (int)result;
}
