#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/spawn.hpp>
#include <ulexite/sync/packaged_task.hpp>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class PackagedTask : public WorkersTest {};
ULEXITE_TEST_WORKERS(PackagedTask);

template <class F>
std::error_code code_of(F&& function) {
  try {
    function();
  } catch (const std::future_error& error) {
    return error.code();
  }
  return {};
}

TEST_P(PackagedTask, GivesItsResultToTheFuture) {
  run([] {
    packaged_task<int(int, std::unique_ptr<int>)> task(
        [held = std::make_unique<int>(2)](int x, std::unique_ptr<int> y) { return *held * x + *y; });
    auto result = task.get_future();
    spawn(std::move(task), 20, std::make_unique<int>(2)).get();
    EXPECT_EQ(result.get(), 42);
    EXPECT_FALSE(task.valid());

    int object = 0;
    packaged_task<int&()> reference([&]() -> int& { return object; });
    auto address = reference.get_future();
    std::thread([&] { reference(); }).join();
    EXPECT_EQ(&address.get(), &object);

    packaged_task<void()> plain([] { return 5; });
    plain();
    plain.get_future().get();
  });
}

TEST_P(PackagedTask, GivesItsExceptionToTheFuture) {
  packaged_task<void()> task([] { throw std::runtime_error("no"); });
  auto result = task.get_future();
  task();
  EXPECT_THROW(result.get(), std::runtime_error);
}

TEST_P(PackagedTask, ReportsMisuseAsStdDoes) {
  packaged_task<int()> none;
  EXPECT_EQ(code_of([&] { none(); }), std::future_errc::no_state);
  EXPECT_EQ(code_of([&] { (void)none.get_future(); }), std::future_errc::no_state);
  EXPECT_EQ(code_of([&] { none.reset(); }), std::future_errc::no_state);
  int calls = 0;
  packaged_task<int()> task([&] { return ++calls; });
  auto first = task.get_future();
  EXPECT_EQ(code_of([&] { (void)task.get_future(); }), std::future_errc::future_already_retrieved);
  task();
  EXPECT_EQ(code_of([&] { task(); }), std::future_errc::promise_already_satisfied);
  EXPECT_EQ(calls, 1);
  task.reset();
  auto second = task.get_future();
  task();
  EXPECT_EQ(first.get(), 1);
  EXPECT_EQ(second.get(), 2);
  task.reset();
  auto third = task.get_future();
  task = packaged_task<int()>();
  EXPECT_EQ(code_of([&] { third.get(); }), std::future_errc::broken_promise);
}

TEST_P(PackagedTask, AValueIsSharedByCopiesOfASharedFuture) {
  run([] {
    promise<std::unique_ptr<int>> source;
    const shared_future<std::unique_ptr<int>> first = source.get_future();
    std::vector<join_handle<int*>> all;
    for (int i = 0; i < 5; ++i) all.push_back(spawn([copy = first] { return copy.get().get(); }));
    EXPECT_EQ(first.wait_for(0s), std::future_status::timeout);
    source.set_value(std::make_unique<int>(3));
    for (auto& each : all) EXPECT_EQ(each.get(), first.get().get());
    EXPECT_EQ(*first.get(), 3);

    promise<void> broken;
    shared_future<void> lost = broken.get_future().share();
    broken = promise<void>();
    EXPECT_EQ(code_of([&] { lost.get(); }), std::future_errc::broken_promise);
    EXPECT_EQ(code_of([&] { lost.get(); }), std::future_errc::broken_promise);
    lost = shared_future<void>();
    EXPECT_FALSE(lost.valid());
    EXPECT_EQ(code_of([&] { lost.wait(); }), std::future_errc::no_state);

    int object = 0;
    promise<int&> reference;
    const shared_future<int&> address = reference.get_future().share();
    reference.set_value(object);
    EXPECT_EQ(&address.get(), &object);
  });
}

}  // namespace
