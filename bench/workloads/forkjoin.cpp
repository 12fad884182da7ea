// Fork and join: trees of short computations. peers/tbb has nqueens and matmul with oneTBB.

#include "common.hpp"
#include "trees.hpp"

#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace bench {
namespace {

int fib_of(int n) {
  float_work(n);
  if (n < 2) return n;
  int x = 0, y = 0;
  ux::parallel_invoke([&] { y = fib_of(n - 2); }, [&] { x = fib_of(n - 1); });
  return x + y;
}

int fib_in_a_loop(int n) {
  int a = 0, b = 1;
  for (int i = 0; i < n; ++i) a = std::exchange(b, a + b);
  return a;
}

long skynet_sum(long number, long size) {
  float_work(static_cast<int>(number));
  if (size == 1) return number;
  std::array<long, 10> sums;
  const auto child = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    return [&] { sums[I] = skynet_sum(number + static_cast<long>(I) * (size / 10), size / 10); };
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ux::parallel_invoke(child(std::integral_constant<std::size_t, I>())...);
  }(std::make_index_sequence<10>());
  return std::accumulate(sums.begin(), sums.end(), 0L);
}

struct forks {
  template <class F>
  static void each(std::size_t n, F&& body) {
    ux::parallel_for(std::size_t{0}, n, body, 1);
  }
  template <class... F>
  static void all(F&&... functions) {
    ux::parallel_invoke(functions...);
  }
  static void touch(int role) { float_work(role); }
};

}  // namespace

void fib(int n) {
  const stopwatch watch;
  require(fib_of(n) == fib_in_a_loop(n), "fib: a wrong number");
  watch.total();
}

void skynet_fj(int n) {
  require_power_of_ten(n);
  const stopwatch watch;
  require(skynet_sum(0, n) == static_cast<long>(n) * (n - 1) / 2, "skynet_fj: a wrong sum");
  watch.total();
}

void nqueens(int n) { place_queens<forks, stopwatch>(n); }
void matmul(int n) { multiply_matrices<forks, stopwatch>(n); }

}  // namespace bench
