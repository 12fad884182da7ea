// The place of the spawn that dumps show for children of when_all, when_any and join_set.

#include "support/waiting.hpp"

#include <ulexite/runtime/dump.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/join_set.hpp>
#include <ulexite/sync/when.hpp>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SpawnPlace : public WorkersTest {
 protected:
  // Calls start(wait), which starts fibers that call wait(). Returns the places that a dump shows for all fibers.
  template <class F>
  std::string places(F start) {
    ulexite::event gate;
    const std::function<void()> wait = [&] { gate.wait(); };
    auto caller = spawn_until_it_waits(rt(), [&] { start(wait); });
    std::ostringstream dump;
    rt().dump(dump, {.backtraces = false});
    gate.set();
    caller.get();
    std::istringstream lines(dump.str());
    std::string places, line;
    while (std::getline(lines, line))
      if (const auto at = line.find("spawned at "); at != line.npos) places += line.substr(at) + '\n';
    return places;
  }
};
ULEXITE_TEST_WORKERS(SpawnPlace);

// Whether `places` has `mine`, and no line of the library.
testing::AssertionResult is_there(const std::string& places, const std::string& mine) {
  for (const char* const library : {"when.hpp", "join_set.hpp", "task_group.hpp"})
    if (places.find(library) != places.npos) return testing::AssertionFailure() << places;
  if (places.find(mine) == places.npos) return testing::AssertionFailure() << mine << " is not in " << places;
  return testing::AssertionSuccess();
}

TEST_P(SpawnPlace, OfRangesAndJoinSetsIsALineOfTheCaller) {
  const auto line = [](int number) { return "spawn_place_test.cpp:" + std::to_string(number) + " in "; };
  EXPECT_TRUE(is_there(places([](auto wait) { when_all(std::vector{wait, wait}); }), line(__LINE__)));
  EXPECT_TRUE(is_there(places([](auto wait) { when_any(std::vector{wait, wait}); }), line(__LINE__)));
  int at = 0;
  const auto use_a_set = [&](auto wait) {
    join_set<> children;
    children.spawn(wait), at = __LINE__;
    children.next();
  };
  const std::string of_set = places(use_a_set);
  EXPECT_TRUE(is_there(of_set, line(at)));
}

TEST_P(SpawnPlace, OfFormsWithAnyNumberOfArgumentsIsInTheCallersCode) {
  const std::string code = "(unit_sync+0x";
  EXPECT_TRUE(is_there(places([](auto wait) { when_all(wait, wait); }), code));
  EXPECT_TRUE(is_there(places([](auto wait) { when_any(wait, wait); }), code));
  EXPECT_TRUE(is_there(places([](auto wait) {
                         join_set<> children;
                         children.spawn([](auto call) { call(); }, wait);
                         children.next();
                       }),
                       code));
}

}  // namespace
