/* Hash tables with equal?. Several fibers may use one at once without harm to the interpreter; a change may then be lost, so a
 * table that several fibers change wants a mutex. */
#include "lisp.h"

#include <string.h>

typedef struct entry {
  value key, of;
  struct entry* next;
  uintptr_t hash;
} entry;

/* Read as one, so that a reader never takes the size of one array for another's. */
typedef struct {
  size_t size; /* a power of two */
  entry* first[];
} buckets;

typedef struct {
  type is;
  size_t count;
  buckets* all;
} table;

static buckets* make_buckets(size_t size) {
  buckets* const made = GC_malloc(sizeof *made + size * sizeof(entry*));
  made->size = size;
  return made;
}

static table* table_at(fiber* by, const primitive* self, value v) {
  check_type(by, self, v, t_table);
  return (table*)v;
}

static entry** place_in(buckets* all, uintptr_t hash) { return &all->first[hash & (all->size - 1)]; }
static buckets* all_of(table* t) { return __atomic_load_n(&t->all, __ATOMIC_ACQUIRE); }
static entry* entry_at(entry** from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
static void set_entry(entry** to, entry* e) { __atomic_store_n(to, e, __ATOMIC_RELEASE); }

static entry* find(table* t, value key) {
  const uintptr_t hash = hash_of(key);
  for (entry* e = entry_at(place_in(all_of(t), hash)); e; e = entry_at(&e->next))
    if (e->hash == hash && equal(e->key, key)) return e;
  return NULL;
}

static void insert(buckets* all, value key, value of, uintptr_t hash) {
  entry* const made = GC_malloc(sizeof *made);
  entry** const place = place_in(all, hash);
  *made = (entry){key, of, entry_at(place), hash};
  set_entry(place, made);
}

/* New entries, because readers may still be in the old ones. */
static void grow(table* t) {
  buckets* const old = all_of(t);
  buckets* const made = make_buckets(2 * old->size);
  for (size_t i = 0; i < old->size; ++i)
    for (entry* e = entry_at(&old->first[i]); e; e = entry_at(&e->next)) insert(made, e->key, load(&e->of), e->hash);
  __atomic_store_n(&t->all, made, __ATOMIC_RELEASE);
}

static void put(table* t, value key, value of) {
  entry* const known = find(t, key);
  if (known) {
    store(&known->of, of);
    return;
  }
  if (__atomic_add_fetch(&t->count, 1, __ATOMIC_RELAXED) > all_of(t)->size) grow(t);
  insert(all_of(t), key, of, hash_of(key));
}

PRIMITIVE(make_table) {
  table* const made = allocate(t_table, sizeof *made);
  made->all = make_buckets(8);
  return (value)made;
}
PRIMITIVE(set) {
  put(table_at(by, self, arguments[0]), arguments[1], arguments[2]);
  return &unspecified;
}
PRIMITIVE(ref_or) {
  entry* const found = find(table_at(by, self, arguments[0]), arguments[1]);
  return found ? load(&found->of) : arguments[2];
}
PRIMITIVE(ref) {
  entry* const found = find(table_at(by, self, arguments[0]), arguments[1]);
  if (found) return load(&found->of);
  if (count == 2) fail(by, "hash-table-ref: no such key", arguments[1]);
  return tail_call(by, arguments[2], 0, NULL);
}
PRIMITIVE(contains) { return from_bool(find(table_at(by, self, arguments[0]), arguments[1]) != NULL); }
PRIMITIVE(update) {
  table* const t = table_at(by, self, arguments[0]);
  entry* const found = find(t, arguments[1]);
  value now = found ? load(&found->of) : arguments[3];
  put(t, arguments[1], apply(by, arguments[2], 1, &now));
  return &unspecified;
}
PRIMITIVE(erase) {
  table* const t = table_at(by, self, arguments[0]);
  const uintptr_t hash = hash_of(arguments[1]);
  for (entry** at = place_in(all_of(t), hash); entry_at(at); at = &entry_at(at)->next) {
    entry* const e = entry_at(at);
    if (e->hash != hash || !equal(e->key, arguments[1])) continue;
    set_entry(at, entry_at(&e->next));
    __atomic_sub_fetch(&t->count, 1, __ATOMIC_RELAXED);
    return &yes;
  }
  return &no;
}
PRIMITIVE(size) {
  return from_integer((intptr_t)__atomic_load_n(&table_at(by, self, arguments[0])->count, __ATOMIC_RELAXED));
}
PRIMITIVE(to_list) {
  buckets* const all = all_of(table_at(by, self, arguments[0]));
  value made = &nil;
  for (size_t i = 0; i < all->size; ++i)
    for (entry* e = entry_at(&all->first[i]); e; e = entry_at(&e->next)) made = cons(cons(e->key, load(&e->of)), made);
  return made;
}

void define_tables(void) {
  static const definition all[] = {{"make-hash-table", 0, 0, make_table},
                                   {"hash-table-set!", 3, 3, set},
                                   {"hash-table-ref", 2, 3, ref},
                                   {"hash-table-ref/default", 3, 3, ref_or},
                                   {"hash-table-contains?", 2, 2, contains},
                                   {"hash-table-update!/default", 4, 4, update},
                                   {"hash-table-delete!", 2, 2, erase},
                                   {"hash-table-size", 1, 1, size},
                                   {"hash-table->alist", 1, 1, to_list}};
  DEFINE(all);
}
