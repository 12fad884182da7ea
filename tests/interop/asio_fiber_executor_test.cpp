// Boost.Asio's handlers, strands and coroutines on the workers.

#include "interop/asio_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <stdexcept>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
using boost::system::error_code;

class FiberExecutor : public AsioTest {};
ULEXITE_TEST_WORKERS(FiberExecutor);

TEST_P(FiberExecutor, RunsHandlersInFibers) {
  run([&] {
    const fiber_executor workers;
    event done;
    asio::steady_timer timer(io_, 1ms);
    timer.async_wait(asio::bind_executor(workers, [&](error_code error) {
      EXPECT_FALSE(error);
      EXPECT_TRUE(in_fiber());
      this_fiber::sleep_for(1ms);
      done.set();
    }));
    done.wait();
    const asio::any_io_executor any = workers;
    asio::post(any, use_fiber);
    EXPECT_EQ(workers, fiber_executor(workers));
    EXPECT_NE(workers, fiber_executor());
  });
  EXPECT_THROW(fiber_executor(), std::system_error) << "there is no runtime here";
}

TEST_P(FiberExecutor, StrandsKeepOrder) {
  run([&] {
    std::vector<int> order;  // without a lock
    wait_group all;
    {
      const auto strand = asio::make_strand(fiber_executor());
      all.add(100);
      for (int i = 0; i < 100; ++i)
        asio::post(strand, [&, i] {
          order.push_back(i);
          // Asio's strand keeps a link of the thread in this frame.
          if (i % 10 == 0) EXPECT_THROW(this_fiber::sleep_for(1ms), usage_error);
          all.done();
        });
    }  // the functions keep the strand, and its context
    all.wait();
    ASSERT_EQ(order.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  });
}

// Else the deadline of the one would end the waits of another in the same strand of an any_io_executor.
TEST_P(FiberExecutor, DoesNotPassDeadlinesOn) {
  run([&] {
    const asio::any_io_executor workers = fiber_executor();
    event done;
    {
      const deadline_scope scope(1ms);
      asio::post(workers, [&] {
        EXPECT_FALSE(this_fiber::deadline());
        EXPECT_NO_THROW(this_fiber::sleep_for(3ms));
        done.set();
      });
    }
    done.wait();
  });
}

TEST_P(FiberExecutor, RunsCoroutinesOfAsio) {
  run([&] {
    const fiber_executor workers;
    const auto three = []() -> asio::awaitable<int> {
      EXPECT_TRUE(in_fiber());
      this_fiber::sleep_for(1ms);
      co_return 3;
    };
    EXPECT_EQ(asio::co_spawn(workers, three(), use_fiber), 3);
    const auto fails = []() -> asio::awaitable<void> {
      throw std::runtime_error("thrown");
      co_return;
    };
    EXPECT_THROW(asio::co_spawn(workers, fails(), use_fiber), std::runtime_error);
    // A deadline cancels the coroutine by an exception of its own.
    const auto waits = [this]() -> asio::awaitable<void> {
      asio::steady_timer timer(io_, 1h);
      co_await timer.async_wait(asio::use_awaitable);
    };
    EXPECT_THROW(timeout(2ms, [&] { asio::co_spawn(io_, waits(), use_fiber); }), deadline_exceeded);
  });
}

}  // namespace
