/* Hash tables with equal?. Several fibers may use one at once: readers take no lock, and no change is lost. Only a
 * change that depends on what was read before wants a mutex of the program. */
#include "lisp.h"

#include <pthread.h>

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
  pthread_mutex_t lock; /* for changes; nothing waits and no error is raised while it is held */
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

static entry* find_from(fiber* by, entry* e, value key, uintptr_t hash) {
  for (; e; e = entry_at(&e->next))
    if (e->hash == hash && equal(by, e->key, key)) return e;
  return NULL;
}

static entry* find(fiber* by, table* t, value key) {
  const uintptr_t hash = hash_of(key);
  return find_from(by, entry_at(place_in(all_of(t), hash)), key, hash);
}

static void insert(buckets* all, value key, value of, uintptr_t hash) {
  entry* const made = GC_malloc(sizeof *made);
  entry** const place = place_in(all, hash);
  *made = (entry){key, of, entry_at(place), hash};
  set_entry(place, made);
}

/* Under the lock. New entries, because readers may still be in the old ones. */
static void grow(table* t) {
  buckets* const old = all_of(t);
  buckets* const made = make_buckets(2 * old->size);
  for (size_t i = 0; i < old->size; ++i)
    for (entry* e = entry_at(&old->first[i]); e; e = entry_at(&e->next)) insert(made, e->key, load(&e->of), e->hash);
  __atomic_store_n(&t->all, made, __ATOMIC_RELEASE);
}

static void set_count(table* t, size_t count) { __atomic_store_n(&t->count, count, __ATOMIC_RELAXED); }

/* False: the table has changed since `all` and `head` were read, so `known` may be wrong. */
static bool put_if_unchanged(table* t, buckets* all, entry* head, entry* known, entry wanted) {
  pthread_mutex_lock(&t->lock);
  const bool unchanged = all_of(t) == all && entry_at(place_in(all, wanted.hash)) == head;
  if (unchanged && known) {
    store(&known->of, wanted.of);
  } else if (unchanged) {
    insert(all, wanted.key, wanted.of, wanted.hash);
    set_count(t, t->count + 1);
    if (t->count > all->size) grow(t);
  }
  pthread_mutex_unlock(&t->lock);
  return unchanged;
}

/* equal? may raise an error, so it is asked before the lock is taken. */
static void put(fiber* by, table* t, value key, value of) {
  const entry wanted = {.key = key, .of = of, .hash = hash_of(key)};
  for (;;) {
    buckets* const all = all_of(t);
    entry* const head = entry_at(place_in(all, wanted.hash));
    if (put_if_unchanged(t, all, head, find_from(by, head, key, wanted.hash), wanted)) return;
  }
}

/* False: it is not in the table any longer, or in a new entry. */
static bool unlink_entry(table* t, entry* e) {
  pthread_mutex_lock(&t->lock);
  entry** at = place_in(all_of(t), e->hash);
  entry* now = entry_at(at);
  for (; now && now != e; now = entry_at(at)) at = &now->next;
  if (now) {
    set_entry(at, entry_at(&e->next));
    set_count(t, t->count - 1);
  }
  pthread_mutex_unlock(&t->lock);
  return now != NULL;
}

PRIMITIVE(make_table) {
  table* const made = allocate(t_table, sizeof *made);
  pthread_mutex_init(&made->lock, NULL);
  made->all = make_buckets(8);
  return (value)made;
}
PRIMITIVE(set) {
  put(by, table_at(by, self, arguments[0]), arguments[1], arguments[2]);
  return &unspecified;
}
PRIMITIVE(ref_or) {
  entry* const found = find(by, table_at(by, self, arguments[0]), arguments[1]);
  return found ? load(&found->of) : arguments[2];
}
PRIMITIVE(ref) {
  entry* const found = find(by, table_at(by, self, arguments[0]), arguments[1]);
  if (found) return load(&found->of);
  if (count == 2) fail(by, "hash-table-ref: no such key", arguments[1]);
  return tail_call(by, arguments[2], 0, NULL);
}
PRIMITIVE(contains) { return from_bool(find(by, table_at(by, self, arguments[0]), arguments[1]) != NULL); }
PRIMITIVE(update) {
  table* const t = table_at(by, self, arguments[0]);
  entry* const found = find(by, t, arguments[1]);
  value now = found ? load(&found->of) : arguments[3];
  put(by, t, arguments[1], apply(by, arguments[2], 1, &now));
  return &unspecified;
}
PRIMITIVE(erase) {
  table* const t = table_at(by, self, arguments[0]);
  for (;;) {
    entry* const found = find(by, t, arguments[1]);
    if (!found) return &no;
    if (unlink_entry(t, found)) return &yes;
  }
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
