#pragma once

// The work of nqueens and matmul, for any way to fork, so that all compared programs do the same. The shapes are those
// of the usual suites of such runtimes. nqueens has a task for each feasible position, without a cut-off. matmul has
// eight multiplications of quarters, in two rounds of four, which write to different quarters.
//
// Their parameter Fork has each(n, body)   calls body(0) to body(n - 1), n above 0, as tasks all(f...)       calls all
//   of the functions, as tasks touch(i)        the other work of a task

#include <array>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace bench {

inline constexpr std::size_t max_queens = 16;
using board = std::array<signed char, max_queens>;  // the row of the queen in each column

inline bool attacked(const board& queens, int column, int row) {
  for (int c = 0; c < column; ++c) {
    const int other = queens[static_cast<std::size_t>(c)];
    if (other == row || other - row == column - c || row - other == column - c) return true;
  }
  return false;
}

// The number of solutions that begin with the queens of the first `column` columns.
template <class Fork>
long solutions(const board& queens, int column, int n) {
  Fork::touch(column);
  if (column == n) return 1;
  std::array<board, max_queens> next;
  std::size_t feasible = 0;
  for (int row = 0; row < n; ++row) {
    if (attacked(queens, column, row)) continue;
    next[feasible] = queens;
    next[feasible++][static_cast<std::size_t>(column)] = static_cast<signed char>(row);
  }
  if (feasible == 0) return 0;
  std::array<long, max_queens> found;
  Fork::each(feasible, [&](std::size_t i) { found[i] = solutions<Fork>(next[i], column + 1, n); });
  return std::accumulate(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(feasible), 0L);
}

// Places n queens in all ways, and throws unless their number is right. `Stopwatch`: measures from its construction.
template <class Fork, class Stopwatch>
void place_queens(int n) {
  constexpr std::array<long, max_queens + 1> numbers{1,   1,   0,    0,     2,     10,     4,       40,      92,
                                                     352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
  if (n < 0 || n > static_cast<int>(max_queens)) throw std::runtime_error("nqueens: N is 16 at most");
  const Stopwatch watch;
  const long found = solutions<Fork>(board{}, 0, n);
  watch.total();
  if (found != numbers[static_cast<std::size_t>(n)]) throw std::runtime_error("nqueens: a wrong number of solutions");
}

// A square part of a matrix of ints, which is in memory row by row.
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
inline void multiply_small(square a, square b, square c) {
  for (int i = 0; i < c.size; ++i)
    for (int k = 0; k < c.size; ++k)
      for (int j = 0; j < c.size; ++j) c.row(i)[j] += a.row(i)[k] * b.row(k)[j];
}

template <class Fork>
void multiply(square a, square b, square c) {
  if (c.size <= 32) return multiply_small(a, b, c);
  for (int k = 0; k < 2; ++k) {
    const auto quarter = [=](int i, int j) {
      Fork::touch(i + j);
      multiply<Fork>(a.quarter(i, k), b.quarter(k, j), c.quarter(i, j));
    };
    Fork::all([=] { quarter(0, 0); }, [=] { quarter(0, 1); }, [=] { quarter(1, 0); }, [=] { quarter(1, 1); });
  }
}

inline std::vector<long> product(const std::vector<int>& matrix, const std::vector<long>& vector) {
  std::vector<long> result(vector.size());
  for (std::size_t i = 0; i < vector.size(); ++i)
    for (std::size_t j = 0; j < vector.size(); ++j) result[i] += matrix[i * vector.size() + j] * vector[j];
  return result;
}

// Multiplies two n by n matrices, and throws unless the product is right, after Freivalds (1977): (a b) v is a (b v).
template <class Fork, class Stopwatch>
void multiply_matrices(int n) {
  if (n < 1 || (n & (n - 1)) != 0) throw std::runtime_error("matmul: N is a power of two");
  const auto rows = static_cast<std::size_t>(n);
  std::vector<int> a(rows * rows), b(rows * rows), c(rows * rows);
  for (std::size_t i = 0; i < rows * rows; ++i) {
    a[i] = static_cast<int>(i % 7) - 3;
    b[i] = static_cast<int>(i % 11) - 5;
  }
  const Stopwatch watch;
  multiply<Fork>({a.data(), n, n}, {b.data(), n, n}, {c.data(), n, n});
  watch.total();
  std::vector<long> v(rows);
  for (std::size_t i = 0; i < rows; ++i) v[i] = static_cast<long>(i * i % 1009);
  if (product(c, v) != product(a, product(b, v))) throw std::runtime_error("matmul: a wrong product");
}

}  // namespace bench
