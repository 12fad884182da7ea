// Descriptors in the event loop.

#include "probes.hpp"

#include <cstdio>
#include <memory>
#include <system_error>

namespace ulexite::test {
namespace {

using events = std::vector<event*>;

TEST(FdSource, ReadyOneIsNotWaitedFor) {
  event_loop loop(1);
  const auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  pair.send();
  poll(loop);
  fd_probe reader;
  reader.prepare();
  EXPECT_FALSE(loop.arm(source, direction::read, reader));
  EXPECT_FALSE(loop.arm(source, direction::write, reader));
  // The edges are consumed now.
  EXPECT_TRUE(loop.arm(source, direction::read, reader));
  loop.disarm(source, direction::read, reader);
  close(loop, source);
}

TEST(FdSource, WhatIsReadyBeforeOpenIsSeen) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  pair.send();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader;
  reader.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  EXPECT_EQ(wait_for_events(loop), events{&reader});
  close(loop, source);
}

// libevent registers the descriptor once, and so the kernel reports an earlier readiness only to the first source.
TEST(FdSource, ASecondOneBeginsAsReady) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& guest = loop.open(pair.ends[0], registrant::guest);
  fd_probe first, second;
  EXPECT_FALSE(loop.arm(guest, direction::read, first));
  first.prepare();
  ASSERT_TRUE(loop.arm(guest, direction::read, first));
  pair.send();
  EXPECT_EQ(wait_for_events(loop), events{&first});
  fd_source& owner = loop.open(pair.ends[0]);
  EXPECT_FALSE(loop.arm(owner, direction::read, second));
  EXPECT_FALSE(loop.arm(owner, direction::write, second));
  second.prepare();
  ASSERT_TRUE(loop.arm(owner, direction::read, second));
  close(loop, guest);
  EXPECT_EQ(pair.receive(), "x");
  pair.send();
  EXPECT_EQ(wait_for_events(loop), events{&second});
  close(loop, owner);
}

TEST(FdSource, ASecondOneLearnsOfTheEndOfTheStream) {
  event_loop loop(1);
  const auto pair = channel_pair::sockets();
  fd_source& guest = loop.open(pair.ends[0], registrant::guest);
  pair.send();
  ASSERT_EQ(::shutdown(pair.ends[1], SHUT_WR), 0);
  poll(loop);
  fd_source& owner = loop.open(pair.ends[0]);
  fd_probe reader;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(loop.arm(owner, direction::read, reader));
  close(loop, owner);
  close(loop, guest);
}

TEST(FdSource, OneThatIsAloneDoesNotBeginAsReady) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  close(loop, loop.open(pair.ends[0], registrant::guest));
  const int refused = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_THROW(loop.open(refused, registrant::guest), std::system_error);
  ::close(refused);
  fd_source& owner = loop.open(pair.ends[0]);
  fd_probe reader;
  EXPECT_TRUE(loop.arm(owner, direction::read, reader));
  close(loop, owner);
}

TEST(FdSource, EdgeIsHandedOverOnce) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader;
  for (int i = 0; i < 3; ++i) {
    reader.prepare();
    ASSERT_TRUE(loop.arm(source, direction::read, reader)) << "the edge before was consumed by its delivery";
    EXPECT_EQ(poll(loop), events{});
    pair.send();
    EXPECT_EQ(wait_for_events(loop), events{&reader});
    EXPECT_EQ(poll(loop), events{});
    EXPECT_EQ(pair.receive(), "x");
  }
  close(loop, source);
}

TEST(FdSource, DirectionsAreApart) {
  event_loop loop(1);
  const auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader, writer;
  reader.prepare();
  writer.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  ASSERT_TRUE(loop.arm(source, direction::write, writer));
  EXPECT_EQ(wait_for_events(loop), events{&writer});
  pair.send();
  EXPECT_EQ(wait_for_events(loop), events{&reader});
  close(loop, source);
}

TEST(FdSource, DisarmedEventIsNotTouchedAndTheEdgeIsKept) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  auto reader = std::make_unique<fd_probe>();
  reader->prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, *reader));
  loop.disarm(source, direction::read, *reader);
  reader.reset();
  pair.send();
  EXPECT_EQ(poll(loop), events{});
  fd_probe next;
  EXPECT_FALSE(loop.arm(source, direction::read, next));
  close(loop, source);
}

TEST(FdSource, DisarmOfAnotherEventChangesNothing) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader, stranger;
  reader.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  loop.disarm(source, direction::read, stranger);
  pair.send();
  EXPECT_EQ(wait_for_events(loop), events{&reader});
  loop.disarm(source, direction::read, reader);
  close(loop, source);
}

TEST(FdSource, LostClaimLeavesTheEdgeForTheNext) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe loser;  // not prepared
  ASSERT_TRUE(loop.arm(source, direction::read, loser));
  pair.send();
  EXPECT_EQ(wait(loop), events{});
  fd_probe next;
  EXPECT_FALSE(loop.arm(source, direction::read, next));
  close(loop, source);
}

TEST(FdSource, CloseWakesBothDirections) {
  event_loop loop(1);
  const auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  poll(loop);
  fd_probe reader, writer;
  EXPECT_FALSE(loop.arm(source, direction::write, writer));
  reader.prepare();
  writer.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  ASSERT_TRUE(loop.arm(source, direction::write, writer));
  EXPECT_EQ(loop.registrations(), 1u);
  event_list woken;
  loop.close(source, woken);
  EXPECT_EQ(contents(woken), (events{&reader, &writer}));
  EXPECT_EQ(loop.registrations(), 0u);
  EXPECT_FALSE(loop.arm(source, direction::read, reader));
  EXPECT_FALSE(loop.arm(source, direction::write, writer));
}

TEST(FdSource, CloseLeavesOutWhatSomebodyElseClaimed) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader;  // not prepared
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  close(loop, source);
}

TEST(FdSource, EndOfStreamStaysReadable) {
  event_loop loop(1);
  auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader;
  reader.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  pair.send("last words");
  ASSERT_EQ(shutdown(pair.ends[1], SHUT_WR), 0);
  EXPECT_EQ(wait_for_events(loop), events{&reader});
  EXPECT_EQ(pair.receive(), "last words");
  // No second edge will come; a reader that waits after its short read must not hang.
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(loop.arm(source, direction::read, reader));
  EXPECT_EQ(pair.receive(), "");
  close(loop, source);
}

TEST(FdSource, EndOfStreamLeavesTheOtherDirectionAlone) {
  event_loop loop(1);
  const auto pair = channel_pair::sockets();
  fd_source& source = loop.open(pair.ends[0]);
  ASSERT_EQ(shutdown(pair.ends[1], SHUT_WR), 0);
  poll(loop);
  fd_probe writer;
  EXPECT_FALSE(loop.arm(source, direction::write, writer));
  EXPECT_TRUE(loop.arm(source, direction::write, writer));
  loop.disarm(source, direction::write, writer);
  close(loop, source);
}

TEST(FdSource, HangUpWakesBothDirections) {
  event_loop loop(1);
  auto pair = channel_pair::sockets();
  const std::string much(1 << 20, 'x');
  while (::write(pair.ends[0], much.data(), much.size()) > 0) {
  }
  fd_source& source = loop.open(pair.ends[0]);
  poll(loop);
  fd_probe reader, writer;
  reader.prepare();
  writer.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  ASSERT_TRUE(loop.arm(source, direction::write, writer));
  pair.shut(1);
  EXPECT_EQ(wait_for_events(loop).size(), 2u);
  close(loop, source);
}

TEST(FdSource, RegularFileIsRefusedQuietly) {
  event_loop loop(1);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  testing::internal::CaptureStderr();
  try {
    loop.open(fileno(file));
    ADD_FAILURE() << "accepted";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::operation_not_permitted);
    EXPECT_NE(std::string(error.what()).find("fd " + std::to_string(fileno(file))), std::string::npos) << error.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(loop.registrations(), 0u);
  std::fclose(file);
}

TEST(FdSource, BadDescriptorsAreRefused) {
  event_loop loop(1);
  for (int fd : {-1, 1'000'000}) {
    try {
      loop.open(fd);
      ADD_FAILURE() << "accepted " << fd;
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
    }
  }
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(FdSource, RecycledOneKnowsNothingOfItsFormerLife) {
  event_loop loop(1);
  fd_source* former = nullptr;
  {
    const auto pair = channel_pair::sockets();
    former = &loop.open(pair.ends[0]);
    pair.send();
    ASSERT_EQ(shutdown(pair.ends[1], SHUT_WR), 0);
    poll(loop);
    close(loop, *former);
  }
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  ASSERT_EQ(&source, former);
  fd_probe reader;
  reader.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  EXPECT_EQ(poll(loop), events{});
  pair.send();
  EXPECT_EQ(wait_for_events(loop), events{&reader});
  close(loop, source);
}

TEST(FdSource, OpenAndCloseDoNotWakeTheBlockedThread) {
  event_loop loop(1);
  turner other(loop);
  const auto pair = channel_pair::pipe();
  // The sleep that is seen first may be another than the loop's. In the loop's it stays undisturbed.
  const auto undisturbed = [&] {
    until_asleep(other.id());
    const std::string sleeps_before = sleeps(other.id());
    for (int i = 0; i < 100; ++i) close(loop, loop.open(pair.ends[0]));
    until_asleep(other.id());
    return sleeps(other.id()) == sleeps_before;
  };
  EXPECT_TRUE(eventually(undisturbed));
}

TEST(FdSource, LoopMayBeDestroyedWithOpenSources) {
  const auto pair = channel_pair::pipe();
  event_loop loop(1);
  loop.open(pair.ends[0]);
}

TEST(FdSource, ManyAreDelivered) {
  event_loop loop(1);
  std::vector<channel_pair> pairs;
  std::vector<fd_source*> sources;
  std::vector<fd_probe> readers(200);
  for (auto& reader : readers) {
    pairs.push_back(channel_pair::pipe());
    sources.push_back(&loop.open(pairs.back().ends[0]));
    reader.prepare();
    ASSERT_TRUE(loop.arm(*sources.back(), direction::read, reader));
    pairs.back().send();
  }
  std::size_t delivered = 0;
  while (delivered < readers.size()) {
    const auto ready = wait_for_events(loop);
    ASSERT_FALSE(ready.empty());
    delivered += ready.size();
  }
  for (fd_source* source : sources) close(loop, *source);
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(FdSourceDeathTest, SecondWaiterInOneDirectionPanics) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe first, second;
  ASSERT_TRUE(loop.arm(source, direction::read, first));
  EXPECT_DEATH((void)loop.arm(source, direction::read, second), "BUG: a second event waits to read");
  loop.disarm(source, direction::read, first);
  close(loop, source);
}

TEST(FdSourceDeathTest, SecondClosePanics) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  close(loop, source);
  event_list woken;
  EXPECT_DEATH(loop.close(source, woken), "BUG: a descriptor's source was closed twice");
}

}  // namespace
}  // namespace ulexite::test
