// For each kind of register: more values than there are registers, which live over a jump.

#include <ulexite/fiber/jump.hpp>

namespace {

// The compiler knows nothing of the value, so it cannot make it again after the jump.
#define UNKNOWN(constraint, value) asm volatile("" : "=" constraint(value))

template <class Value, int Count, class Make, class Use>
[[gnu::always_inline]] inline void keep(void* to, Make make, Use use) {
  Value values[Count];
#pragma GCC unroll 40
  for (int i = 0; i < Count; ++i) make(values[i]);
  ulexite::detail::jump(to, nullptr);
#pragma GCC unroll 40
  for (int i = 0; i < Count; ++i) use(values[i]);
}

}  // namespace

extern "C" {

extern volatile long place;

// An operand of asm would not be in r16 to r31.
void keep_general(void* to) {
  keep<long, 33>(to, [](long& value) { value = place; }, [](long value) { place = value; });
}

void keep_vector(void* to) {
  keep<double, 33>(
      to, [](double& value) { UNKNOWN("x", value); },
#ifdef __AVX__
      [](double value) { asm volatile("vucomisd %0, %0" ::"x"(value)); });
#else
      [](double value) { asm volatile("ucomisd %0, %0" ::"x"(value)); });
#endif
}

void keep_x87(void* to) {
  keep<long double, 3>(
      to, [](long double& value) { UNKNOWN("t", value); },
      [](long double value) { asm volatile("fxam" ::"t"(value)); });
}

#ifdef __AVX512F__
void keep_mask(void* to) {
  keep<unsigned short, 9>(
      to, [](unsigned short& value) { UNKNOWN("k", value); },
      [](unsigned short value) { asm volatile("kortestw %0, %0" ::"k"(value)); });
}

void keep_upper_vector(void* to) {
  keep<double, 33>(
      to, [](double& value) { UNKNOWN("v", value); },
      [](double value) { asm volatile("vucomisd %0, %0" ::"v"(value)); });
}
#endif
}
