/* What a name means where it stands: between the compiler and the macros. */
#ifndef LISP_SCOPE_H
#define LISP_SCOPE_H

#include "lisp.h"

/* One frame's variables while it is compiled. */
struct scope {
  scope* outer;
  value* names; /* symbols and aliases */
  int count, room;
  value macros; /* a list of (name . macro) */
};

typedef struct special {
  const node* (*compile)(fiber* by, value form, scope* in, bool tail);
} special;

typedef enum { m_local, m_global, m_macro, m_special } meaning_kind;
typedef struct {
  meaning_kind kind;
  int depth, index; /* of a local variable */
  symbol* global;
  value macro;
} meaning;

meaning meaning_of(value name, scope* in);
int add_name(scope* to, value name);
/* A body: definitions and expressions, in a frame of `in`. */
const node* compile_body(fiber* by, value body, scope* in);
const node* compile_in(fiber* by, value form, scope* in, bool tail);
/* The form with its macro expanded, again and again until its head is none. */
value expand_head(fiber* by, value form, scope* in);
/* What `form` begins with, if it is that special form. */
bool begins_with(value form, scope* in, const char* name);

#endif
