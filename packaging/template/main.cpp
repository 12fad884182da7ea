#include "counter.hpp"

#include <iostream>

int main() {
  ulexite::run([] {
    counter seen;
    ulexite::scope([&](ulexite::task_group& fibers) {
      for (int i = 0; i < 1000; ++i) fibers.spawn([&] { seen.add(1); });
    });
    std::cout << seen.value() << " fibers were here\n";
  });
}
