#include "support/waiting.hpp"

#include <ulexite/sync/future.hpp>

#include <array>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Future : public WorkersTest {};
ULEXITE_TEST_WORKERS(Future);

template <class F>
void expect_code(std::future_errc code, F function) {
  try {
    function();
    ADD_FAILURE() << "no exception";
  } catch (const std::future_error& error) {
    EXPECT_EQ(error.code(), code);
  }
}

TEST_P(Future, GivesTheValueThatThePromiseGot) {
  auto check = [] {
    promise<std::string> text;
    future<std::string> there = text.get_future();
    EXPECT_TRUE(there.valid());
    EXPECT_EQ(there.wait_for(0s), std::future_status::timeout);
    const std::string value(100, 'x');
    text.set_value(value);
    EXPECT_EQ(there.wait_for(0s), std::future_status::ready);
    there.wait();
    EXPECT_EQ(there.get(), value);
    EXPECT_FALSE(there.valid());

    int object = 3;
    promise<int&> reference;
    auto refers = reference.get_future();
    reference.set_value(object);
    EXPECT_EQ(&refers.get(), &object);

    promise<void> fact;
    auto known = fact.get_future();
    fact.set_value();
    known.get();
    EXPECT_FALSE(known.valid());

    promise<std::unique_ptr<int>> only;
    auto moved = only.get_future();
    only.set_value(std::make_unique<int>(5));
    EXPECT_EQ(*moved.get(), 5);
  };
  run(check);
  check();
}

TEST_P(Future, WakesFibersAndThreads) {
  for (int i = 0; i < times(500); ++i) {
    promise<int> one, two;
    auto fiber = rt().spawn([&, there = one.get_future()]() mutable {
      const int value = there.get();
      two.set_value(value + 1);
    });
    std::thread thread([&] { one.set_value(i); });
    EXPECT_EQ(two.get_future().get(), i + 1);
    thread.join();
    fiber.get();
  }
}

TEST_P(Future, ThrowsTheExceptionThatThePromiseGot) {
  promise<int> value;
  auto there = value.get_future();
  auto waiter = spawn_until_it_waits(rt(), [&] { return there.get(); });
  EXPECT_THROW(value.set_exception(nullptr), usage_error);
  EXPECT_FALSE(waiter.done());
  value.set_exception(std::make_exception_ptr(std::runtime_error("bad")));
  EXPECT_THROW(waiter.get(), std::runtime_error);
  EXPECT_FALSE(there.valid());
}

TEST_P(Future, HasStdsErrors) {
  promise<int> value;
  auto there = value.get_future();
  expect_code(std::future_errc::future_already_retrieved, [&] { (void)value.get_future(); });
  value.set_value(1);
  expect_code(std::future_errc::promise_already_satisfied, [&] { value.set_value(2); });
  expect_code(std::future_errc::promise_already_satisfied,
              [&] { value.set_exception(std::make_exception_ptr(std::runtime_error("late"))); });
  promise<int> other = std::move(value);
  expect_code(std::future_errc::no_state, [&] { value.set_value(2); });
  expect_code(std::future_errc::no_state, [&] { (void)value.get_future(); });
  expect_code(std::future_errc::no_state,
              [&] { value.set_exception(std::make_exception_ptr(std::runtime_error("nowhere"))); });
  expect_code(std::future_errc::future_already_retrieved, [&] { (void)other.get_future(); });
  EXPECT_EQ(there.get(), 1);
  expect_code(std::future_errc::no_state, [&] { there.get(); });
  expect_code(std::future_errc::no_state, [&] { there.wait(); });
  expect_code(std::future_errc::no_state, [&] { there.wait_for(1s); });
  expect_code(std::future_errc::no_state, [&] { there.wait_until(ulexite::steady_clock::now()); });
  future<int> none;
  EXPECT_FALSE(none.valid());
}

TEST_P(Future, APromiseThatGoesUnsatisfiedIsBroken) {
  auto value = std::make_unique<promise<void>>();
  auto there = value->get_future();
  auto waiter = spawn_until_it_waits(rt(), [&] { there.get(); });
  value.reset();
  expect_code(std::future_errc::broken_promise, [&] { waiter.get(); });

  promise<int> replaced;
  auto old = replaced.get_future();
  replaced = promise<int>();
  EXPECT_EQ(old.wait_for(0s), std::future_status::ready);
  expect_code(std::future_errc::broken_promise, [&] { old.get(); });
  auto fresh = replaced.get_future();
  replaced.set_value(3);
  {
    const promise<int> last = std::move(replaced);
  }
  EXPECT_EQ(fresh.get(), 3) << "kept in spite of the promise's end";
}

TEST_P(Future, WaitsNoLongerThanAllowed) {
  auto check = [] {
    promise<int> value;
    auto there = value.get_future();
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(there.wait_for(2ms), std::future_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_EQ(there.wait_until(ulexite::steady_clock::now() - 1s), std::future_status::timeout);
    value.set_value(7);
    EXPECT_EQ(there.wait_until(ulexite::steady_clock::time_point::max()), std::future_status::ready);
    EXPECT_EQ(there.get(), 7);
  };
  run(check);
  check();
}

// Its moves throw while `armed`.
struct fragile {
  explicit fragile(int value, bool armed = false) : value(value), armed(armed) {}
  fragile(fragile&& other) : value(other.value), armed(other.armed) {
    if (armed) throw std::runtime_error("fragile");
  }
  int value;
  bool armed;
};

TEST_P(Future, AThrowingMoveLeavesThePromiseUnsatisfied) {
  run([] {
    promise<fragile> value;
    auto there = value.get_future();
    EXPECT_THROW(value.set_value(fragile(1, true)), std::runtime_error);
    EXPECT_EQ(there.wait_for(0s), std::future_status::timeout);
    value.set_value(fragile(2));
    EXPECT_EQ(there.get().value, 2);
  });
}

TEST_P(Future, ValuesMayBeOverAligned) {
  struct alignas(256) wide {
    explicit wide(int value) : value(value) { check(); }
    wide(wide&& other) noexcept : value(other.value) { check(); }
    void check() const { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % 256, 0u); }
    int value;
  };
  std::array<promise<wide>, 8> values;
  for (auto& each : values) {
    each.set_value(wide(1));
    EXPECT_EQ(each.get_future().get().value, 1);
  }
}

TEST_P(Future, TheValueIsDestroyedWithTheLastWhoCouldTakeIt) {
  auto token = std::make_shared<int>(1);
  {
    promise<std::shared_ptr<int>> value;
    value.set_value(token);
    auto there = value.get_future();
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Future, OfSeveralWhoSetOneSucceeds) {
  run([] {
    for (int i = 0; i < times(500); ++i) {
      promise<int> value;
      std::atomic<int> winners{0}, winner{-1};
      std::vector<join_handle<>> all;
      for (int me = 0; me < 4; ++me)
        all.push_back(spawn([&, me] {
          try {
            value.set_value(me);
            winner = me;
            ++winners;
          } catch (const std::future_error& error) {
            EXPECT_EQ(error.code(), std::future_errc::promise_already_satisfied);
          }
        }));
      const int got = value.get_future().get();
      for (auto& each : all) each.get();
      EXPECT_EQ(winners, 1);
      EXPECT_EQ(winner, got);
    }
  });
}

// The promise is destroyed as soon as get returns: set_value must not touch it after that.
TEST_P(Future, ThePromiseMayBeDestroyedAsSoonAsGetReturns) {
  run([] {
    for (int i = 0; i < times(3000); ++i) {
      auto value = std::make_unique<promise<int>>();
      auto there = value->get_future();
      spawn([p = value.get()] { p->set_value(1); }).detach();
      if (i % 2 == 0) this_fiber::yield();
      while (i % 3 == 0 && there.wait_for(1us) == std::future_status::timeout) {
      }
      EXPECT_EQ(there.get(), 1);
    }
  });
}

// It may be called under a lock of another library, and in callbacks.
TEST_F(RuntimeTest, APromiseIsSatisfiedWithoutAYield) {
  make(1).run([] {
    bool ran = false;
    auto other = spawn([&] { ran = true; });
    for (int i = 0; i < 1000; ++i) {
      promise<int> kept;
      kept.set_value(i);
      const promise<int> broken;
    }
    EXPECT_FALSE(ran);
    other.join();
  });
}

}  // namespace
