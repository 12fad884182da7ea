// The states of one descriptor, without a loop. With one: fd_source_test.cpp.

#include "probes.hpp"

#include <ulexite/evloop/readiness.hpp>

namespace ulexite::test {
namespace {

using detail::readiness;

struct Readiness : testing::Test {
  static constexpr bool no = false, yes = true;

  bool arm_read() {
    reader.prepare();
    const bool armed = status.arm(direction::read, reader);
    if (armed) status.disarm(direction::read, reader);
    return armed;
  }

  channel_pair pair = channel_pair::sockets();
  readiness status;
  fd_probe reader;
  event_list fired;
};

TEST_F(Readiness, IsClosedAtFirst) {
  EXPECT_FALSE(arm_read());
  EXPECT_FALSE(arm_read());
}

TEST_F(Readiness, RemembersAnEdgeOnce) {
  status.open(pair.ends[0], 0);
  EXPECT_TRUE(arm_read());
  status.fire(yes, no, no, 1, fired);
  EXPECT_FALSE(arm_read());
  EXPECT_TRUE(arm_read());
}

TEST_F(Readiness, IgnoresEdgesWhenClosed) {
  status.open(pair.ends[0], 0);
  status.close(fired);
  status.fire(yes, yes, yes, 1, fired);
  status.open(pair.ends[0], 1);
  EXPECT_TRUE(arm_read());
}

TEST_F(Readiness, ForgetsAnOldHangUpInTheTurnOfItsOpening) {
  status.open(pair.ends[0], 7);
  status.fire(yes, no, yes, 7, fired);
  EXPECT_FALSE(arm_read()) << "the edge counts once";
  EXPECT_TRUE(arm_read());
}

TEST_F(Readiness, BelievesATrueHangUpInTheTurnOfItsOpening) {
  shutdown(pair.ends[1], SHUT_WR);
  status.open(pair.ends[0], 7);
  status.fire(yes, no, yes, 7, fired);
  EXPECT_FALSE(arm_read());
  EXPECT_FALSE(arm_read());
}

TEST_F(Readiness, BelievesAHangUpInALaterTurn) {
  status.open(pair.ends[0], 7);
  status.fire(no, no, yes, 8, fired);
  EXPECT_FALSE(arm_read());
  EXPECT_FALSE(arm_read());
}

}  // namespace
}  // namespace ulexite::test
