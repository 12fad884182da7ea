// One fiber does random operations that need no wait, or are served directly, on a channel and on a model of a channel.

#include "support/runtime_fixture.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/sync/channel.hpp>

#include <deque>
#include <random>

namespace {

using namespace ulexite;
using namespace ulexite::test;

struct model {
  explicit model(std::size_t room) : capacity(room) {}

  channel_status send(int value) {
    if (closed) return channel_status::closed;
    if (values.size() >= capacity) return channel_status::would_block;
    values.push_back(value);
    return channel_status::ok;
  }
  channel_status receive(int& value) {
    if (values.empty()) return closed ? channel_status::closed : channel_status::would_block;
    value = values.front();
    values.pop_front();
    return channel_status::ok;
  }

  std::size_t capacity;
  bool closed = false;
  std::deque<int> values;
};

channel_status after_waiting(channel_status status) {
  return status == channel_status::would_block ? channel_status::timeout : status;
}

class ChannelModel : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Capacity, ChannelModel, testing::Values(0, 1, 2, 5, 100, unbounded));

TEST_P(ChannelModel, ChannelDoesWhatTheModelDoes) {
  const watchdog dog("ChannelModel");
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  detail::random random(seed);
  for (int game = 0; game < times(100); ++game) {
    channel<int> real(GetParam());
    model ideal(GetParam());
    for (int step = 0; step < 200; ++step) {
      int value = step, real_value = step, ideal_value = step;
      const bool in_time = random.below(10) == 0;
      switch (random.below(8)) {
        case 0:
        case 1:
        case 2:
          if (in_time) {
            ASSERT_EQ(real.send_for(value, 0s), after_waiting(ideal.send(step)));
          } else {
            ASSERT_EQ(real.try_send(value), ideal.send(step));
          }
          break;
        case 3:
        case 4:
        case 5:
          if (in_time) {
            ASSERT_EQ(real.receive_for(real_value, 0s), after_waiting(ideal.receive(ideal_value)));
          } else {
            ASSERT_EQ(real.try_receive(real_value), ideal.receive(ideal_value));
          }
          ASSERT_EQ(real_value, ideal_value);
          break;
        case 6:
          if (random.below(20) == 0) {
            ASSERT_EQ(real.close(), !ideal.closed);
            ideal.closed = true;
          }
          break;
        default: ASSERT_EQ(real.size(), ideal.values.size()); ASSERT_EQ(real.is_closed(), ideal.closed);
      }
    }
  }
}

}  // namespace
