// The fork-join workloads that do some work, with oneTBB's task groups: bench WORKLOAD THREADS N
// The work of each task is that of ../../workloads/forkjoin.cpp.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {

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
  const auto visit = [&](std::size_t i) { found[i] = solutions(next[i], column + 1, n); };
  tbb::task_group group;
  for (std::size_t i = 0; i + 1 < feasible; ++i) group.run([&visit, i] { visit(i); });
  group.run_and_wait([&] { visit(feasible - 1); });
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
    const auto quarter = [=](int i, int j) { multiply(a.quarter(i, k), b.quarter(k, j), c.quarter(i, j)); };
    tbb::task_group group;
    group.run([=] { quarter(0, 1); });
    group.run([=] { quarter(1, 0); });
    group.run([=] { quarter(1, 1); });
    group.run_and_wait([=] { quarter(0, 0); });
  }
}

class stopwatch {
 public:
  void total() const {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    std::printf("total_ms %.2f\n", elapsed.count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void nqueens(int n) {
  const stopwatch watch;
  const long found = solutions(board{}, 0, n);
  watch.total();
  if (n == 14 && found != 365596) throw std::runtime_error("nqueens: a wrong number of solutions");
}

void matmul(int n) {
  const auto rows = static_cast<std::size_t>(n);
  std::vector<int> a(rows * rows), b(rows * rows), c(rows * rows);
  for (std::size_t i = 0; i < rows * rows; ++i) {
    a[i] = static_cast<int>(i % 7) - 3;
    b[i] = static_cast<int>(i % 11) - 5;
  }
  const stopwatch watch;
  multiply({a.data(), n, n}, {b.data(), n, n}, {c.data(), n, n});
  watch.total();
  for (std::size_t j = 0; j < rows; ++j) {  // the first row
    int sum = 0;
    for (std::size_t k = 0; k < rows; ++k) sum += a[k] * b[k * rows + j];
    if (sum != c[j]) throw std::runtime_error("matmul: a wrong product");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s WORKLOAD THREADS N\n", argv[0]);
    return 2;
  }
  const std::string name = argv[1];
  if (name != "nqueens" && name != "matmul") return 3;
  const int threads = std::atoi(argv[2]), n = std::atoi(argv[3]);
  try {
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    tbb::task_arena arena(threads);
    arena.execute([&] { name == "nqueens" ? nqueens(n) : matmul(n); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
