// Part 1: more fibers than a program could have threads.

#include "check.hpp"
#include "machine.hpp"
#include "part.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tour {

using namespace std::chrono_literals;

namespace {

// All that the fibers share.
struct meeting {
  const std::uint64_t crowd;
  ulexite::channel<std::uint64_t> numbers{};  // of capacity 0: each send waits for its receive
  ulexite::wait_group to_arrive{crowd};
  std::vector<ulexite::join_handle<std::uint64_t>> fibers{};

  explicit meeting(std::uint64_t size) : crowd(size) {}
  meeting(const meeting&) = delete;
  meeting& operator=(const meeting&) = delete;
  // After a failure: fibers that still wait get nothing instead of a number.
  ~meeting() {
    numbers.close();
    for (auto& fiber : fibers)
      if (fiber.joinable()) fiber.join();
  }
};

// The function of one fiber. It counts itself in as its last step before it waits.
std::uint64_t take_a_number(meeting& all) {
  all.to_arrive.done();
  return all.numbers.receive().value_or(0);
}

void spawn_the_crowd(meeting& all, ulexite::runtime& runtime, progress& line) {
  all.fibers.reserve(all.crowd);
  for (std::uint64_t i = 0; i < all.crowd; ++i) {
    all.fibers.push_back(ulexite::spawn([&all] { return take_a_number(all); }));
    line.add();
  }
  // A fiber without memory for its stack starts when another has ended. But no fiber would end, because they all wait
  // for us.
  while (!all.to_arrive.wait_for(1s))
    check(runtime.metrics().stacks_refused == 0, "the system refuses the memory for so many stacks; try --fibers");
}

// Sends the numbers from 1 on; then each must have arrived, and none twice.
void release_the_crowd(meeting& all, progress& line) {
  for (std::uint64_t number = 1; number <= all.crowd; ++number) {
    all.numbers.send(number);
    line.add();
  }
  std::vector<bool> seen(all.crowd + 1);
  std::uint64_t sum = 0;
  for (auto& fiber : all.fibers) {
    const std::uint64_t number = fiber.get();  // waits for the end of the fiber, and takes what it returned
    check(number >= 1 && number <= all.crowd, "a fiber got the number " + std::to_string(number));
    check(!seen[number], "two fibers got the number " + std::to_string(number));
    seen[number] = true;
    sum += number;
  }
  check_equal("sum of the numbers", sum, all.crowd * (all.crowd + 1) / 2);
}

}  // namespace

result meet_on_a_channel(ulexite::runtime& runtime, std::size_t crowd) {
  progress line(runtime, "1/4 fibers meeting on a channel", "fibers spawned", crowd);
  return runtime.run([&] {
    meeting all(crowd);
    const std::size_t memory_before = resident_memory();
    const stopwatch creation;
    spawn_the_crowd(all, runtime, line);
    const double to_create = creation.seconds();
    const std::size_t memory = std::max(resident_memory(), memory_before) - memory_before;
    const std::size_t live = runtime.metrics().fibers_live;
    check(live > crowd, "only " + std::to_string(live) + " fibers were alive at once");

    line.restart("fibers released", crowd);
    const stopwatch end;
    release_the_crowd(all, line);
    const double to_release = end.seconds();

    const double seconds = to_create + to_release;
    return result{.done = grouped(crowd) + " fibers parked at once, each sent a number",
                  .check = "each number once, sum",
                  .seconds = seconds,
                  .rate = rate(static_cast<double>(crowd), seconds, "fibers"),
                  .details = {"resident memory per parked fiber: " + grouped(memory / crowd) + " bytes, " +
                                  bytes(memory) + " for " + grouped(live) + " live fibers",
                              duration(to_create) + " to create and park them, " + duration(to_release) +
                                  " to release and join them"}};
  });
}

}  // namespace tour
