// Random trees of fibers that spawn, yield, sleep, compute and join, in runtimes that come and go.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>

#include <memory>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct forest {
  program& test;
  std::atomic<int> room;  // how many fibers may still be spawned
  std::atomic<long> spawned{0}, ended{0};

  forest(program& owner, int most) : test(owner), room(most) {}

  void grow(std::uint64_t seed) {
    detail::random random(seed);
    std::vector<join_handle<>> children;
    for (std::uint32_t i = 0, steps = random.below(12); i < steps; ++i) {
      switch (random.below(8)) {
        case 0:
        case 1:
        case 2:
          if (room.fetch_sub(1) > 0) {
            ++spawned;
            children.push_back(spawn([this, child = random.next()] { grow(child); }));
          }
          break;
        case 3: this_fiber::sleep_for(std::chrono::microseconds(random.below(200))); break;
        case 4:
          for (std::uint32_t k = random.below(2000); k > 0; --k) detail::cpu_relax();
          break;
        case 5:
          if (!children.empty()) {
            children.back().join();
            children.pop_back();
          }
          break;
        case 6:
          if (!children.empty()) children.back().wait_for(std::chrono::microseconds(random.below(100)));
          break;
        default: this_fiber::yield();
      }
    }
    while (!children.empty()) {
      if (random.below(4) == 0) {
        children.back().detach();
      } else {
        children.back().join();
      }
      children.pop_back();
    }
    ++ended;
    test.moved();
  }
};

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  while (test.another_round()) {
    detail::random random = test.random();
    std::vector<std::unique_ptr<runtime>> runtimes;
    std::vector<std::unique_ptr<forest>> forests;
    for (std::uint32_t i = 0, count = 1 + random.below(3); i < count; ++i) {
      runtimes.push_back(std::make_unique<runtime>(
          runtime_options{.threads = 1 + random.below(static_cast<std::uint32_t>(test.threads))}));
      if (i == 0) runtimes[0] = std::make_unique<runtime>(runtime_options{.threads = test.threads});
      forests.push_back(std::make_unique<forest>(test, fibers(2000)));
      for (int k = 0; k < 4; ++k) {
        ++forests.back()->spawned;
        runtimes.back()->spawn([f = forests.back().get(), seed = random.next()] { f->grow(seed); }).detach();
      }
    }
    test.show(runtimes[0].get());
    for (std::size_t i = 0; i < runtimes.size(); ++i) {
      if (random.below(2) == 0) {
        const int answer = runtimes[i]->run([f = forests[i].get(), seed = random.next()] {
          ++f->spawned;
          f->grow(seed);
          return 42;
        });
        test.check(answer == 42, "run gave another result", answer);
      }
    }
    test.show(nullptr);
    for (std::size_t i = 0; i < runtimes.size(); ++i) {
      runtimes[i]->shutdown(shutdown_mode::drain);
      test.check(forests[i]->spawned == forests[i]->ended, "fibers did not end",
                 forests[i]->spawned - forests[i]->ended);
      test.check_metrics(*runtimes[i], true);
    }
  }
  return test.report();
}
