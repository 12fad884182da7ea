// Descriptors in the event loop while several threads use it.

#include "probes.hpp"

#include <ulexite/base/random.hpp>

#include <memory>
#include <thread>

namespace ulexite::test {
namespace {

// Waits for a byte the way a caller of the loop does. False: it did not come.
bool receive(event_loop& loop, fd_source& source, const channel_pair& pair) {
  fd_probe reader;
  for (int tries = 0; tries < 1000; ++tries) {
    if (!pair.receive(1).empty()) return true;
    reader.prepare();
    if (!loop.arm(source, direction::read, reader)) continue;
    if (!eventually([&] { return reader.now_is == fd_probe::delivered; })) return false;
  }
  return false;
}

TEST(FdSourceRace, EveryByteArrives) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  constexpr int count = 5000;
  {
    turner other(loop);
    std::thread sender([&] {
      for (int i = 0; i < count; ++i) {
        pair.send();
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
    for (int i = 0; i < count; ++i) EXPECT_TRUE(receive(loop, source, pair));
    sender.join();
  }
  close(loop, source);
}

// Arms on a new source. An old edge may come first, but not for ever.
void arm_new(fd_source& source, fd_probe& reader) {
  reader.prepare();
  int refusals = 0;
  while (refusals <= 2 && !event_loop::arm(source, direction::read, reader)) ++refusals;
  EXPECT_LE(refusals, 2);
}

// One life of a source with a waiting event that is delivered, taken back, claimed by others, or closed under. The
// event is on the heap, so that a sanitizer sees an access that is too late.
void live_once(event_loop& loop, detail::random& random) {
  const auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  auto reader = std::make_unique<fd_probe>();
  const auto delivered = [&] { return reader->now_is == fd_probe::delivered; };
  arm_new(source, *reader);
  const bool sent = random.below(4) != 0;
  if (sent) pair.send();
  if (random.below(2) == 0) shutdown(pair.ends[1], SHUT_WR);  // must not be taken for a hang-up of the next life
  switch (random.below(4)) {
    case 0:  // delivered
      shutdown(pair.ends[1], SHUT_WR);
      EXPECT_TRUE(eventually(delivered));
      break;
    case 1:  // taken back
      loop.disarm(source, direction::read, *reader);
      EXPECT_TRUE(reader->now_is == fd_probe::armed || eventually(delivered));
      break;
    case 2: {  // claimed by another thread
      const bool taken = reader->take_away();
      loop.disarm(source, direction::read, *reader);
      EXPECT_TRUE(taken ? reader->now_is == fd_probe::idle : eventually(delivered));
      break;
    }
    default: {  // closed under
      event_list woken;
      loop.close(source, woken);
      EXPECT_TRUE(!woken.empty() || eventually(delivered));
      return;
    }
  }
  reader.reset();
  close(loop, source);
}

TEST(FdSourceRace, ArmDisarmAndCloseRaceWithTheLoop) {
  event_loop loop(1);
  {
    turner other(loop);
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed) {
      threads.emplace_back([&loop, seed] {
        detail::random random(seed);
        for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) live_once(loop, random);
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(FdSourceRace, CloseRacesWithAWaiterOfAnotherThread) {
  event_loop loop(1);
  turner other(loop);
  for (int i = 0; i < 500; ++i) {
    const auto pair = channel_pair::pipe();
    fd_source& source = loop.open(pair.ends[0]);
    std::atomic<bool> armed{false};
    fd_probe reader;
    std::thread waiter([&] {
      arm_new(source, reader);
      armed = true;
      EXPECT_TRUE(eventually([&] { return reader.now_is == fd_probe::delivered; }));
    });
    ASSERT_TRUE(eventually([&] { return armed.load(); }));
    if (i % 2 == 0) pair.send();
    event_list woken;
    loop.close(source, woken);
    if (!woken.empty()) reader.now_is = fd_probe::delivered;
    waiter.join();
  }
}

}  // namespace
}  // namespace ulexite::test
