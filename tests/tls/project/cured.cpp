// The address is computed again behind a wall that no compiler looks through.
thread_local int counter;

extern "C" __attribute__((noinline)) void waits_for_something() { asm volatile("" : : : "memory"); }

__attribute__((noinline, noipa)) static void add(int amount) { counter += amount; }

extern "C" void count() {
  add(1);
  waits_for_something();
  add(-1);
}
