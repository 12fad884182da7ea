// What is known to go wrong with thread_local and fibers, each in some lines, as it was seen elsewhere; and its cure.
// The functions are compiled and looked at by tools/tls_check; none is called. broken_ must be found, cured_ must not.

#include <cerrno>
#include <cstddef>
#include <cstdint>

#define CASE extern "C" __attribute__((noinline, used))

// What is behind the wall of a function that no compiler looks into is computed anew.
#define OPAQUE __attribute__((noinline, noipa))

extern "C" OPAQUE void ulexite_test_suspend() { asm volatile(""); }  // any wait
extern "C" OPAQUE void ulexite_test_use(int* place) { asm volatile("" : : "r"(place)); }

// A compiler may compute an address anew, and each decides otherwise: here it is kept.
#define KEPT(address) asm volatile("" : "+r"(address))

namespace {

thread_local int counter;
thread_local int table[64];
thread_local struct cache {
  int* slots[8];
  int used;
} thread_cache;
thread_local std::uint64_t seed;

OPAQUE int& own_counter() {
  int* place = &counter;
  asm volatile("" : "+r"(place));
  return *place;
}

}  // namespace

// 1. gcc PR 26461: the address is computed once for both accesses.
CASE int* broken_address_once() {
  int* const first = &counter;
  ulexite_test_use(first);
  ulexite_test_suspend();
  ulexite_test_use(&counter);
  return nullptr;
}
CASE void cured_address_once() {
  ulexite_test_use(&own_counter());
  ulexite_test_suspend();
  ulexite_test_use(&own_counter());
}

// 2. llvm-project 98479: an access in a loop is moved out of it.
CASE void broken_loop(int times) {
  int* place = &table[times & 63];
  KEPT(place);
  for (int i = 0; i < times; ++i) {
    *place += i;
    ulexite_test_suspend();
  }
}
CASE void cured_loop(int times) {
  for (int i = 0; i < times; ++i) {
    own_counter() += i;
    ulexite_test_suspend();
  }
}

// 3. HPX 7527: errno's address is kept, because its function is declared const.
CASE int broken_errno(int (*call)()) {
  errno = 0;
  const int result = call();
  ulexite_test_suspend();
  return result < 0 ? errno : 0;
}
CASE int cured_errno(int (*call)()) {
  ulexite_test_suspend();
  errno = 0;
  return call();
}

// A worker's loop stays on its thread, so it may do so.
namespace ulexite::detail {
struct worker_threads {
  static __attribute__((noinline, used)) int be_worker(std::size_t index) {
    errno = 0;
    ulexite_test_suspend();
    return index == 0 ? errno : 0;
  }
};
}  // namespace ulexite::detail

// 4. jemalloc 2890: an allocator's cache, inlined by link-time optimization into what waits.
CASE void broken_allocator_cache(int* given) {
  cache& own = thread_cache;
  own.slots[own.used & 7] = given;
  ulexite_test_suspend();
  ++own.used;
}

// 5. ClickHouse 102460: a reference to the thread's state is taken at the beginning and used to the end.
CASE void broken_reference(std::uint64_t times) {
  std::uint64_t* own = &seed;
  KEPT(own);
  for (; *own < times; ++*own) ulexite_test_suspend();
}

// 6. A guard that counts up, waits, and counts down.
CASE void broken_depth_counter() {
  int& depth = counter;
  ++depth;
  ulexite_test_suspend();
  --depth;
}
CASE void cured_depth_counter() {
  ++own_counter();
  ulexite_test_suspend();
  --own_counter();
}

// 7. A pointer on the stack: too many values for the registers.
CASE int broken_spilled(int a, int b, int c, int d, int e, int f) {
  int* volatile kept = &counter;
  ulexite_test_suspend();
  *kept = a * b + c * d + e * f;
  return a + b + c + d + e + f;
}

// 8. An address that is handed on.
CASE void broken_argument() {
  int* place = &counter;
  KEPT(place);
  ulexite_test_suspend();
  ulexite_test_use(place);
}

// 9. On one way only.
CASE void broken_one_way(bool waits) {
  int* place = &counter;
  KEPT(place);
  if (waits) ulexite_test_suspend();
  *place = 1;
}
CASE void cured_one_way(bool waits) {
  if (waits) ulexite_test_suspend();
  own_counter() = 1;
}

// 10. The wait is one call deeper.
static OPAQUE void waits_somewhere(int depth) {
  if (depth > 0) ulexite_test_suspend();
  asm volatile("");
}
CASE void broken_deeper(int depth) {
  int& own = counter;
  own = depth;
  waits_somewhere(depth);
  own = 0;
}

// 11. The last access before the wait, and the first after it, by different names.
CASE void broken_two_names(std::size_t i) {
  int* const one = table;
  one[i] = 1;
  ulexite_test_suspend();
  one[i + 1] = 2;
}
CASE void cured_nothing_after(std::size_t i) {
  table[i] = 1;
  ulexite_test_suspend();
}

// 12. Behind the jump through a table of a switch.
CASE int broken_switch(int which) {
  int* place = &counter;
  KEPT(place);
  switch (which) {
    case 0: asm volatile("" : : "r"(10)); return 3;
    case 1: asm volatile("" : : "r"(11)); return 14;
    case 2: asm volatile("" : : "r"(12)); return 15;
    case 3:
      ulexite_test_suspend();
      *place = 1;
      return 92;
    case 4: asm volatile("" : : "r"(14)); return 65;
    case 5: asm volatile("" : : "r"(15)); return 35;
    case 6: asm volatile("" : : "r"(16)); return 89;
    default: return 0;
  }
}
CASE int cured_switch(int which) {
  switch (which) {
    case 0: asm volatile("" : : "r"(20)); return 3;
    case 1: asm volatile("" : : "r"(21)); return 14;
    case 2: asm volatile("" : : "r"(22)); return 15;
    case 3:
      ++own_counter();
      ulexite_test_suspend();
      ++own_counter();
      return 92;
    case 4: asm volatile("" : : "r"(24)); return 65;
    case 5: asm volatile("" : : "r"(25)); return 35;
    case 6: asm volatile("" : : "r"(26)); return 89;
    default: return 0;
  }
}

// 13. The address was made stale before a jump inside a case: the table of a switch in a switch.
CASE int broken_switch_in_a_switch(int which, int inner) {
  int* place = &counter;
  KEPT(place);
  switch (which) {
    case 0: asm volatile("" : : "r"(30)); return 3;
    case 1: asm volatile("" : : "r"(31)); return 14;
    case 2: asm volatile("" : : "r"(32)); return 15;
    case 3: asm volatile("" : : "r"(33)); return 92;
    case 4: asm volatile("" : : "r"(34)); return 65;
    case 5:
      ulexite_test_suspend();
      switch (inner) {
        case 0: asm volatile("" : : "r"(40)); return 1;
        case 1: asm volatile("" : : "r"(41)); return 41;
        case 2: asm volatile("" : : "r"(42)); return 42;
        case 3: *place = 1; return 13;
        case 4: asm volatile("" : : "r"(44)); return 56;
        case 5: asm volatile("" : : "r"(45)); return 23;
        default: return 7;
      }
    default: return 0;
  }
}

// 14. What waits has a name that begins as one of the C library's. It is hidden, so the call names it directly.
#define WAITS(name) extern "C" OPAQUE __attribute__((visibility("hidden"))) void name()
WAITS(memory_wait) { ulexite_test_suspend(); }
WAITS(string_wait) { ulexite_test_suspend(); }
WAITS(free_and_wait) { ulexite_test_suspend(); }
WAITS(exit_and_wait) { ulexite_test_suspend(); }
WAITS(abort_and_wait) { ulexite_test_suspend(); }
WAITS(malloc_and_wait) { ulexite_test_suspend(); }

template <class Wait>
inline __attribute__((always_inline)) void count_over(Wait wait) {
  int* own = &counter;
  KEPT(own);
  ++*own;
  wait();
  --*own;
}
CASE void broken_name_mem() {
  count_over([] { memory_wait(); });
}
CASE void broken_name_str() {
  count_over([] { string_wait(); });
}
CASE void broken_name_free() {
  count_over([] { free_and_wait(); });
}
CASE void broken_name_exit() {
  count_over([] { exit_and_wait(); });
}
CASE void broken_name_abort() {
  count_over([] { abort_and_wait(); });
}
CASE void broken_name_malloc() {
  count_over([] { malloc_and_wait(); });
}

int main() {}
