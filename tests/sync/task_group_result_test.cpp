// Children with results that cannot be moved to their place.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <array>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class TaskGroupResult : public WorkersTest {};
ULEXITE_TEST_WORKERS(TaskGroupResult);

struct immovable_now {
  immovable_now() = default;
  immovable_now(immovable_now&&) { throw std::runtime_error("the move of the result"); }
};

immovable_now make_immovable() {
  immovable_now made;
  return made;
}

void wait_for_the_stop() { event().wait(); }

TEST_P(TaskGroupResult, ThatCannotBeMovedIsAFailure) {
  run([] {
    task_group group;
    auto child = group.spawn(make_immovable);
    auto sibling = group.spawn(wait_for_the_stop);
    EXPECT_THROW(group.wait(), std::runtime_error);
    EXPECT_EQ(group.failures(), 1u);
    EXPECT_THROW(child.get(), std::runtime_error);
    EXPECT_THROW(sibling.get(), operation_cancelled);
  });
}

TEST_P(TaskGroupResult, OfALargeFunctionToo) {
  run([] {
    task_group group;
    group.spawn([large = std::array<char, 1000>()]() { return static_cast<void>(large), make_immovable(); });
    group.spawn(wait_for_the_stop);
    EXPECT_THROW(group.wait(), std::runtime_error);
  });
}

TEST_P(TaskGroupResult, EndsAWhenAll) {
  run([] { EXPECT_THROW(when_all(make_immovable, wait_for_the_stop), std::runtime_error); });
}

}  // namespace
