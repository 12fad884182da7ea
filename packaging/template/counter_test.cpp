// Runs the function below under many schedules. If counter::add read the value under one lock and wrote it under
// another, this would fail, and name the schedule that repeats the failure.
#include "counter.hpp"

#include <ulexite/testing/explore.hpp>

#include <iostream>

int main() {
  try {
    const auto explored = ulexite::testing::explore([] {
      counter seen;
      ulexite::task_group both;
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
