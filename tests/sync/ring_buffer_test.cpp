#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/channel.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace ulexite;
using ulexite::detail::ring_buffer;

TEST(RingBuffer, IsFirstInFirstOutAsItGrowsAndWraps) {
  ring_buffer<std::string> ring;
  std::deque<std::string> model;
  int number = 0;
  for (int round = 1; round < 50; ++round) {
    for (int i = 0; i < round; ++i) {
      ring.push(std::to_string(number));
      model.push_back(std::to_string(number++));
    }
    for (int i = 0; i < round * 3 / 4; ++i) {
      ASSERT_EQ(ring.front(), model.front());
      ring.pop();
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.empty(), model.empty());
  }
}

TEST(RingBuffer, DestroysWhatIsLeft) {
  auto token = std::make_shared<int>();
  {
    ring_buffer<std::shared_ptr<int>> ring;
    for (int i = 0; i < 9; ++i) ring.push(std::shared_ptr(token));
    for (int i = 0; i < 3; ++i) ring.pop();
    EXPECT_EQ(token.use_count(), 7);
  }
  EXPECT_EQ(token.use_count(), 1);
}

// Throws at every move or copy once `fuse` has burnt down.
struct fragile {
  explicit fragile(int number) : value(number) { ++alive; }
  fragile(fragile&& other) : value(other.value) {
    burn();
    ++alive;
    other.value = -1;
  }
  fragile(const fragile& other) : value(other.value) {
    burn();
    ++alive;
  }
  ~fragile() { --alive; }
  static void burn() {
    if (fuse >= 0 && fuse-- == 0) throw std::runtime_error("fragile");
  }
  int value;
  static inline int fuse = -1, alive = 0;
};

// Its copy is declared, but does not compile, and its move may throw.
TEST(RingBuffer, HoldsContainersOfWhatCannotBeCopied) {
  ring_buffer<std::deque<std::unique_ptr<int>>> ring;
  for (int i = 0; i < 9; ++i) {
    std::deque<std::unique_ptr<int>> one;
    one.push_back(std::make_unique<int>(i));
    ring.push(std::move(one));
  }
  for (int i = 0; i < 9; ++i, ring.pop()) EXPECT_EQ(*ring.front().front(), i);
}

TEST(RingBuffer, AThrowingMoveChangesNothing) {
  for (int fuse = 0; fuse < 12; ++fuse) {
    {
      ring_buffer<fragile> ring;
      for (int i = 0; i < 4; ++i) ring.push(fragile(i));
      fragile::fuse = fuse;
      bool pushed = true;
      try {
        ring.push(fragile(4));  // grows
      } catch (const std::runtime_error&) {
        pushed = false;
      }
      fragile::fuse = -1;
      ASSERT_EQ(ring.size(), pushed ? 5u : 4u);
      for (int i = 0; i < (pushed ? 5 : 4); ++i) {
        ASSERT_EQ(ring.front().value, i) << "fuse " << fuse;
        ring.pop();
      }
    }
    EXPECT_EQ(fragile::alive, 0);
  }
}

TEST(RingBuffer, StartsAtItsBeginningWhenItIsEmpty) {
  ring_buffer<int> ring;
  for (int i = 0; i < 100; ++i) ring.push(int{i});
  const int* const beginning = &ring.front();
  for (int i = 0; i < 100; ++i) ring.pop();
  for (int i = 0; i < 1000; ++i, ring.pop()) {
    ring.push(int{i});
    ASSERT_EQ(&ring.front(), beginning);
  }
}

TEST(RingBuffer, GivesALargeBlockBackWhenItIsEmpty) {
  struct page {
    char bytes[4096];
  };
  ring_buffer<page> ring;
  for (int i = 0; i < 1000; ++i) ring.push(page{});
  for (int i = 0; i < 1000; ++i) ring.pop();
  EXPECT_TRUE(ring.full()) << "it has no block";
  for (int i = 0; i < 16; ++i) ring.push(page{});
  for (int i = 0; i < 16; ++i) ring.pop();
  EXPECT_FALSE(ring.full()) << "a block of 64 KiB stays";
}

TEST(RingBuffer, CountsItsLargeBlock) {
  runtime rt({.threads = 1});
  const auto bytes = [&rt] { return rt.metrics().channel_bytes; };
  const std::size_t before = bytes();
  {
    channel<std::uint64_t> few(unbounded), many(unbounded);
    for (int i = 0; i < 1000; ++i) few.send(1);
    EXPECT_EQ(bytes(), before) << "a small block is not counted";
    for (int i = 0; i < 1'000'000; ++i) many.send(1);
    EXPECT_EQ(bytes() - before, (std::size_t{8} << 20));
    for (int i = 0; i < 999'999; ++i) many.receive();
    EXPECT_EQ(bytes() - before, (std::size_t{8} << 20)) << "the block stays until the channel is empty";
    many.receive();
    EXPECT_EQ(bytes(), before);
    for (int i = 0; i < 100'000; ++i) many.send(1);
    EXPECT_EQ(bytes() - before, (std::size_t{1} << 20));
  }
  EXPECT_EQ(bytes(), before) << "the end of a channel releases its block";
}

}  // namespace
