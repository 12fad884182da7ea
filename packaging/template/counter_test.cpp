// Runs the function below under many schedules. Without the lock in counter::add the test fails, and says which schedule
// does it.
#include "counter.hpp"

#include <ulexite/testing/explore.hpp>

#include <iostream>

int main() {
  try {
    const auto explored = ulexite::testing::explore([] {
      counter seen;
      ulexite::wait_group both;
      both.spawn([&] { seen.add(1); });
      both.spawn([&] { seen.add(2); });
      both.wait();
      ulexite::testing::expect(seen.value() == 3, "no addition is lost");
    });
    std::cout << explored.schedules << " schedules passed\n";
  } catch (const ulexite::testing::schedule_failed& failed) {
    std::cout << failed.what() << '\n';
    return 1;
  }
}
