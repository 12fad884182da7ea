// Fork and join: trees of short computations. The shapes of nqueens and matmul are those of the usual suites of such
// runtimes: a task for each feasible position, without a cut-off; and eight multiplications of quarters in two rounds
// of four, which write to different quarters. peers/tbb has the same with oneTBB.

#include "common.hpp"

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

constexpr std::size_t max_queens = 16;
using board = std::array<signed char, max_queens>;  // the row of the queen in each column

bool attacked(const board& queens, int column, int row) {
  for (int c = 0; c < column; ++c) {
    const int other = queens[static_cast<std::size_t>(c)];
    if (other == row || other - row == column - c || row - other == column - c) return true;
  }
  return false;
}

// The number of solutions that begin with the queens of the first `column` columns.
long solutions(const board& queens, int column, int n) {
  float_work(column);
  if (column == n) return 1;
  std::array<board, max_queens> next;
  std::size_t feasible = 0;
  for (int row = 0; row < n; ++row) {
    if (attacked(queens, column, row)) continue;
    next[feasible] = queens;
    next[feasible++][static_cast<std::size_t>(column)] = static_cast<signed char>(row);
  }
  std::array<long, max_queens> found;
  ux::parallel_for(std::size_t{0}, feasible, [&](std::size_t i) { found[i] = solutions(next[i], column + 1, n); }, 1);
  return std::accumulate(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(feasible), 0L);
}

// A square part of a matrix of ints that lies in memory row by row.
struct square {
  int* first;
  int size;
  int stride;

  [[nodiscard]] int* row(int i) const { return first + static_cast<std::ptrdiff_t>(i) * stride; }
  [[nodiscard]] square quarter(int down, int right) const {
    const int half = size / 2;
    return {row(down * half) + right * half, half, stride};
  }
};

// c += a * b
void multiply_small(square a, square b, square c) {
  for (int i = 0; i < c.size; ++i)
    for (int k = 0; k < c.size; ++k)
      for (int j = 0; j < c.size; ++j) c.row(i)[j] += a.row(i)[k] * b.row(k)[j];
}

void multiply(square a, square b, square c) {
  if (c.size <= 32) return multiply_small(a, b, c);
  for (int k = 0; k < 2; ++k) {
    const auto quarter = [=](int i, int j) {
      float_work(i + j);
      multiply(a.quarter(i, k), b.quarter(k, j), c.quarter(i, j));
    };
    ux::parallel_invoke([=] { quarter(0, 0); }, [=] { quarter(0, 1); }, [=] { quarter(1, 0); }, [=] { quarter(1, 1); });
  }
}

std::vector<long> product(const std::vector<int>& matrix, const std::vector<long>& vector) {
  std::vector<long> result(vector.size());
  for (std::size_t i = 0; i < vector.size(); ++i)
    for (std::size_t j = 0; j < vector.size(); ++j) result[i] += matrix[i * vector.size() + j] * vector[j];
  return result;
}

}  // namespace

void fib(int n) {
  const stopwatch watch;
  require(fib_of(n) == fib_in_a_loop(n), "fib: a wrong number");
  watch.total();
}

void skynet_fj(int n) {
  const stopwatch watch;
  require(skynet_sum(0, n) == static_cast<long>(n) * (n - 1) / 2, "skynet_fj: a wrong sum");
  watch.total();
}

void nqueens(int n) {
  constexpr std::array<long, max_queens + 1> numbers{1,   1,   0,    0,     2,     10,     4,       40,      92,
                                                     352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
  require(n >= 0 && n <= static_cast<int>(max_queens), "nqueens: N is 16 at most");
  const stopwatch watch;
  require(solutions(board{}, 0, n) == numbers[static_cast<std::size_t>(n)], "nqueens: a wrong number of solutions");
  watch.total();
}

// The product is checked after Freivalds (1977): (a b) v is a (b v).
void matmul(int n) {
  require(n >= 1 && (n & (n - 1)) == 0, "matmul: N is a power of two");
  const auto rows = static_cast<std::size_t>(n);
  std::vector<int> a(rows * rows), b(rows * rows), c(rows * rows);
  for (std::size_t i = 0; i < rows * rows; ++i) {
    a[i] = static_cast<int>(i % 7) - 3;
    b[i] = static_cast<int>(i % 11) - 5;
  }
  const stopwatch watch;
  multiply({a.data(), n, n}, {b.data(), n, n}, {c.data(), n, n});
  watch.total();
  std::vector<long> v(rows);
  for (std::size_t i = 0; i < rows; ++i) v[i] = static_cast<long>(i * i % 1009);
  require(product(c, v) == product(a, product(b, v)), "matmul: a wrong product");
}

}  // namespace bench
