#include "support/waiting.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/watch.hpp>

#include <memory>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Watch : public WorkersTest {};
ULEXITE_TEST_WORKERS(Watch);

TEST_P(Watch, ShowsTheNewestValue) {
  watch<std::string> settings("a");
  auto receiver = settings.subscribe();
  EXPECT_EQ(settings.get(), "a");
  EXPECT_EQ(receiver.get(), "a");
  EXPECT_FALSE(receiver.has_changed());
  settings.set("b");
  settings.set("c");
  EXPECT_TRUE(receiver.has_changed());
  EXPECT_EQ(receiver.receive(), "c");
  EXPECT_FALSE(receiver.has_changed());
  std::string value;
  EXPECT_EQ(receiver.try_receive(value), channel_status::would_block);
  settings.set("d");
  EXPECT_EQ(receiver.get(), "d");
  EXPECT_EQ(receiver.receive_for(value, 1ms), channel_status::timeout);
}

TEST_P(Watch, WakesItsReceivers) {
  watch<int> level(0);
  std::vector<join_handle<int>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(spawn_until_it_waits(rt(), [mine = level.subscribe()]() mutable { return mine.receive().value(); }));
  level.set(7);
  for (auto& each : all) EXPECT_EQ(each.get(), 7);
}

// However many values are skipped, the last one is always seen.
TEST_P(Watch, TheLastValueIsSeen) {
  for (int round = 0; round < times(50); ++round) {
    watch<int> level(0);
    auto seen = rt().spawn([mine = level.subscribe()]() mutable {
      int last = 0;
      while (const auto value = mine.receive()) {
        EXPECT_GT(*value, last);
        last = *value;
      }
      return last;
    });
    std::thread setting([&] {
      for (int i = 1; i <= 100; ++i) level.set(i);
      level.close();
    });
    EXPECT_EQ(seen.get(), 100);
    setting.join();
    EXPECT_THROW(level.set(1), channel_closed);
    EXPECT_EQ(level.get(), 100);
  }
}

TEST_P(Watch, StandsInSelects) {
  auto level = std::make_unique<watch<int>>(0);
  auto receiver = level->subscribe();
  auto waiter = spawn_until_it_waits(rt(), [&] {
    int got = 0;
    select(on_receive(receiver, [&](std::optional<int> value) { got = value.value_or(-1); }), after(10s));
    return got;
  });
  level->set(3);
  EXPECT_EQ(waiter.get(), 3);
  level.reset();
  EXPECT_EQ(receiver.receive(), std::nullopt);
  EXPECT_EQ(receiver.get(), 3);
}

}  // namespace
