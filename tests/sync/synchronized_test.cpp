#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/synchronized.hpp>

#include <map>
#include <stdexcept>
#include <string>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Synchronized : public WorkersTest {};
ULEXITE_TEST_WORKERS(Synchronized);

TEST_P(Synchronized, LetsOneAtATimeAtTheValue) {
  synchronized<std::map<int, long>> counts;
  const auto work = [&] {
    for (int i = 0; i < times(1000); ++i)
      counts.with_lock([&](auto& map) {
        const long before = map[i % 7];
        if (i % 50 == 0) this_fiber::yield();
        map[i % 7] = before + 1;
      });
  };
  crowd(rt(), 4, 2, work).join();
  long sum = 0;
  for (const auto& [key, count] : counts.copy()) sum += count;
  EXPECT_EQ(sum, 6L * times(1000));
}

TEST_P(Synchronized, ReturnsWhatTheFunctionGives) {
  run([] {
    synchronized<std::string> text(3, 'a');
    const auto& constant = text;
    static_assert(std::is_same_v<decltype(constant.with_lock([](auto& s) -> auto& { return s; })), const std::string&>);
    static_assert(std::is_same_v<decltype(text.with_lock([](auto& s) -> auto& { return s; })), std::string&>);
    EXPECT_EQ(text.with_lock(&std::string::size), 3u);
    EXPECT_EQ(constant.with_lock([](const std::string& s) { return s + "b"; }), "aaab");
    EXPECT_EQ(text.exchange("new"), "aaa");
    EXPECT_EQ(constant.copy(), "new");
  });
}

TEST_P(Synchronized, HoldsWhatCannotBeCopiedNorMoved) {
  synchronized<std::unique_ptr<int>> pointer(std::make_unique<int>(1));
  EXPECT_EQ(*pointer.exchange(std::make_unique<int>(2)), 1);
  EXPECT_EQ(pointer.with_lock([](auto& p) { return *p; }), 2);
  struct fixed {
    explicit fixed(int value) : value(value) {}
    fixed(fixed&&) = delete;
    int value;
  };
  synchronized<fixed> place(3);
  EXPECT_EQ(place.with_lock([](fixed& f) { return ++f.value; }), 4);
}

TEST_P(Synchronized, IsReleasedByAnException) {
  run([] {
    synchronized<int> value(1);
    EXPECT_THROW(value.with_lock([](int&) { throw std::runtime_error("out"); }), std::runtime_error);
    EXPECT_EQ(value.copy(), 1);
    EXPECT_THROW(value.with_lock([&](int&) { return value.copy(); }), usage_error) << "from inside";
    EXPECT_EQ(value.exchange(2), 1);
  });
}

TEST_P(Synchronized, ReadersShareAValueWithASharedMutex) {
  run([] {
    synchronized<std::map<int, int>, shared_mutex> values;
    values.with_lock([](auto& map) { map[1] = 2; });
    latch both(2);
    const auto read = [&] {
      return values.with_shared_lock([&](const auto& map) {
        both.arrive_and_wait();  // never, if one kept the other out
        return map.at(1);
      });
    };
    auto other = spawn(read);
    EXPECT_EQ(read(), 2);
    EXPECT_EQ(other.get(), 2);
    EXPECT_EQ(values.copy().size(), 1U);
    EXPECT_EQ(values.exchange({}).size(), 1U);
  });
}

TEST_P(Synchronized, DeducesItsType) {
  synchronized counter(5);
  static_assert(std::is_same_v<decltype(counter), synchronized<int>>);
  EXPECT_EQ(counter.copy(), 5);
  const synchronized<int> zero = {};
  EXPECT_EQ(zero.copy(), 0);
}

}  // namespace
