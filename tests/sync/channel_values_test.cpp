// Values that are awkward to handle.

#include "support/waiting.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/select.hpp>

#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ChannelValues : public WorkersTest {};
ULEXITE_TEST_WORKERS(ChannelValues);

// Its moves throw when `left` has counted down to 0, and leave a shell behind.
struct fragile {
  explicit fragile(int initial) : value(initial) {}
  fragile(fragile&& other) : value(other.value) {
    if (--left == 0) throw std::runtime_error("a move");
    other.value = -1;
  }

  static inline int left = 0;
  int value;
};

TEST_P(ChannelValues, NoneIsLostByAMoveThatFails) {
  run([] {
    for (int at = 1; at <= 8; ++at) {
      channel<fragile> values(100);
      fragile::left = 0;
      for (int i = 0; i < 4; ++i) values.send(fragile(i));  // the next makes the buffer grow
      fragile::left = at;
      try {
        values.send(fragile(4));
      } catch (const std::runtime_error&) {
      }
      fragile::left = 0;
      values.close();
      int expected = 0;
      for (fragile& each : values) EXPECT_EQ(each.value, expected++);
      EXPECT_GE(expected, 4);
    }
  });
}

struct without_address {
  int value = 0;
  void operator&() const = delete;
};

TEST_P(ChannelValues, MayHideTheirAddresses) {
  channel<without_address> values;
  auto receiver = spawn_until_it_waits(rt(), [&] { return values.receive()->value; });
  values.send({1});
  EXPECT_EQ(receiver.get(), 1);
  auto sender = spawn_until_it_waits(rt(), [&] { values.send({2}); });
  for (const without_address& each : values) {
    EXPECT_EQ(each.value, 2);
    values.close();
  }
  sender.get();
  channel<without_address> buffered(1);
  without_address third{3};
  select(on_send(buffered, third));
  EXPECT_EQ(buffered.begin()->value, 3);
}

struct point {
  int x = 0, y = 0;
};
template <class T, class Value>
concept selects_what_send_takes = requires(channel<T>& to, Value&& value) { on_send(to, std::forward<Value>(value)); };
static_assert(selects_what_send_takes<std::size_t, int&>);
static_assert(selects_what_send_takes<std::string, const char*>);
static_assert(selects_what_send_takes<std::unique_ptr<int>, std::unique_ptr<int>&>);
static_assert(!selects_what_send_takes<std::unique_ptr<int>, int*>);
static_assert(!selects_what_send_takes<point, int>);

TEST_P(ChannelValues, AreConvertedInASelectAsInASend) {
  channel<std::size_t> sizes(1);
  int size = 5;
  select(on_send(sizes, size));
  EXPECT_EQ(sizes.receive(), 5u);
  channel<std::string> texts(1);
  select(on_send(texts, "text"));
  EXPECT_EQ(texts.receive(), "text");
  channel<point> points(1);
  select(on_send(points, point{1, 2}));
  EXPECT_EQ(points.receive()->y, 2);
}

}  // namespace
