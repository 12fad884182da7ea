// The address of the counter is kept over the wait.
thread_local int counter;

extern "C" __attribute__((noinline)) void waits_for_something() { asm volatile("" : : : "memory"); }

extern "C" void count() {
  int* const own = &counter;
  ++*own;
  waits_for_something();
  --*own;
}
