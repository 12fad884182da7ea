// The fork-join workloads that do some work, with oneTBB's task groups: bench WORKLOAD THREADS N
// Their work is that of ../../workloads/trees.hpp.

#include "../../workloads/trees.hpp"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {

struct tasks {
  template <class F>
  static void each(std::size_t n, const F& body) {
    tbb::task_group group;
    for (std::size_t i = 0; i + 1 < n; ++i) group.run([&body, i] { body(i); });
    group.run_and_wait([&] { body(n - 1); });
  }
  template <class First, class... Others>
  static void all(const First& first, const Others&... others) {
    tbb::task_group group;
    (group.run(others), ...);
    group.run_and_wait(first);
  }
  static void touch(int) {}
};

class stopwatch {
 public:
  void total() const {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    std::printf("total_ms %.2f\n", elapsed.count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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
    arena.execute([&] {
      name == "nqueens" ? bench::place_queens<tasks, stopwatch>(n) : bench::multiply_matrices<tasks, stopwatch>(n);
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
