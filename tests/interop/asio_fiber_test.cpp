// Boost.Asio's operations in fibers.

#include "interop/asio_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

// An operation whose handler `complete` gets, with the signature S.
template <class S, class Token, class F>
auto operation(Token token, F complete) {
  return asio::async_initiate<Token, S>([&complete](auto handler) { complete(std::move(handler)); }, token);
}

tcp::acceptor acceptor_on(asio::io_context& context) {
  return tcp::acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
}

// Two sockets that are connected, by operations at both ends.
template <class Executor>
std::pair<tcp::socket, tcp::socket> connected(tcp::acceptor& acceptor, const Executor& executor) {
  tcp::socket left(executor);
  auto right = spawn([&] { return acceptor.async_accept(executor, use_fiber); });
  left.async_connect(acceptor.local_endpoint(), use_fiber);
  return {std::move(left), right.get()};
}

// Echoes until the end of the stream.
template <class Socket>
void echo(Socket& socket) {
  char data[64];
  error_code error;
  while (const std::size_t n = socket.async_read_some(asio::buffer(data), use_fiber(error)))
    asio::async_write(socket, asio::buffer(data, n), use_fiber);
  EXPECT_EQ(error, asio::error::eof);
}

class AsioFiber : public AsioTest {};
ULEXITE_TEST_WORKERS(AsioFiber);

TEST_P(AsioFiber, GivesResults) {
  const auto check = [] {
    operation<void()>(use_fiber, [](auto handler) { std::move(handler)(); });
    EXPECT_EQ((operation<void(int)>(use_fiber, [](auto handler) { std::move(handler)(3); })), 3);
    EXPECT_EQ(
        (operation<void(int, const std::string&)>(use_fiber, [](auto handler) { std::move(handler)(3, "text"); })),
        std::tuple(3, std::string("text")));
    auto moved = operation<void(error_code, std::unique_ptr<int>)>(
        use_fiber, [](auto handler) { std::move(handler)(error_code(), std::make_unique<int>(5)); });
    EXPECT_EQ(*moved, 5);
  };
  check();  // on a plain thread
  run(check);
}

TEST_P(AsioFiber, ThrowsErrorsOrSetsThem) {
  const auto fails = [](auto handler) { std::move(handler)(error_code(asio::error::host_not_found), 7); };
  using signature = void(error_code, int);
  run([&] {
    try {
      operation<signature>(use_fiber, fails);
      ADD_FAILURE() << "no error";
    } catch (const system_error& error) {
      EXPECT_EQ(error.code(), asio::error::host_not_found);
    }
    error_code error;
    EXPECT_EQ(operation<signature>(use_fiber(error), fails), 7) << "the results that came with the error";
    EXPECT_EQ(error, asio::error::host_not_found);
    asio::post(io_, use_fiber(error));
    EXPECT_FALSE(error);
    const auto throws = [](auto handler) {
      std::move(handler)(std::make_exception_ptr(std::runtime_error("thrown")), 0);
    };
    EXPECT_THROW((operation<void(std::exception_ptr, int)>(use_fiber, throws)), std::runtime_error);
    EXPECT_THROW((operation<void(std::exception_ptr, int)>(use_fiber(error), throws)), std::runtime_error);
    // an initiation that fails
    EXPECT_THROW(operation<signature>(use_fiber, [](auto) { throw std::bad_alloc(); }), std::bad_alloc);
  });
}

// The end comes before the fiber waits, while it begins to wait, and after that.
TEST_P(AsioFiber, EndsAtAnyMoment) {
  run([&] {
    std::minstd_rand random;
    for (int round = 0; round < 500; ++round) {
      std::atomic<bool> go{false};
      const auto early = random() % 2000, late = random() % 2000;
      const auto pause = [](auto turns) {
        for (; turns != 0; --turns) std::atomic_signal_fence(std::memory_order_seq_cst);
      };
      const int got = operation<void(error_code, int)>(use_fiber, [&](auto handler) {
        asio::post(io_, [handler = std::move(handler), &go, early, round, &pause]() mutable {
          while (!go) std::this_thread::yield();
          pause(early);
          std::move(handler)(error_code(), round);
        });
        go = true;
        pause(late);
      });
      EXPECT_EQ(got, round);
    }
  });
}

TEST_P(AsioFiber, EndsWhenTheHandlerIsDestroyed) {
  run([&] {
    error_code error;
    const auto drops = [](auto) {};
    operation<void()>(use_fiber(error), drops);
    EXPECT_EQ(error, asio::error::operation_aborted);
    EXPECT_EQ((operation<void(error_code, int)>(use_fiber(error), drops)), 0);
    EXPECT_THROW((operation<void(error_code, int)>(use_fiber, drops)), system_error);
    // A result that cannot be made up.
    EXPECT_THROW((operation<void(error_code, tcp::socket)>(use_fiber(error), drops)), system_error);

    auto unrun = std::make_unique<asio::io_context>(1);
    auto waits = spawn([&] {
      error_code aborted;
      asio::post(*unrun, use_fiber(aborted));
      return aborted;
    });
    wait_until_others_wait();
    unrun.reset();
    EXPECT_EQ(waits.get(), asio::error::operation_aborted);
  });
}

TEST_P(AsioFiber, WaitsForTimers) {
  run([&] {
    const auto begun = std::chrono::steady_clock::now();
    asio::steady_timer timer(io_, 2ms);
    timer.async_wait(use_fiber);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 2ms);
    use_fiber_t::as_default_on_t<asio::steady_timer> by_default(io_, 1ms);
    by_default.async_wait();
    // Cancelled by another: an error as any.
    timer.expires_after(1h);
    auto other = spawn([&] {
      wait_until_others_wait();
      asio::post(io_, [&] { timer.cancel(); });
    });
    error_code error;
    timer.async_wait(use_fiber(error));
    EXPECT_EQ(error, asio::error::operation_aborted);
  });
}

TEST_P(AsioFiber, EchoesOverTcp) {
  run([&] {
    tcp::acceptor acceptor = acceptor_on(io_);
    task_group group;
    for (int client = 0; client < 4; ++client) {
      auto [left, right] = connected(acceptor, io_.get_executor());
      group.spawn([socket = std::move(right)]() mutable { echo(socket); });
      group.spawn([socket = std::move(left), client]() mutable {
        for (int i = 0; i < 20; ++i) {
          const std::string text = std::to_string(client) + " says " + std::to_string(i);
          EXPECT_EQ(asio::async_write(socket, asio::buffer(text), use_fiber), text.size());
          std::string got(text.size(), ' ');
          EXPECT_EQ(asio::async_read(socket, asio::buffer(got), use_fiber), text.size());
          EXPECT_EQ(got, text);
        }
      });
    }
    group.wait();
    const tcp::socket only_bound(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    tcp::socket socket(io_);
    error_code error;
    socket.async_connect(only_bound.local_endpoint(), use_fiber(error));
    EXPECT_EQ(error, asio::error::connection_refused);
  });
}

TEST_P(AsioFiber, StopsAndDeadlinesCancel) {
  run([&] {
    tcp::acceptor acceptor = acceptor_on(io_);
    auto [left, right] = connected(acceptor, io_.get_executor());
    char data[8];
    EXPECT_THROW(timeout(2ms, [&] { left.async_read_some(asio::buffer(data), use_fiber); }), deadline_exceeded);
    error_code error;
    {
      const deadline_scope scope(2ms);
      EXPECT_THROW(asio::async_read(left, asio::buffer(data), use_fiber(error)), deadline_exceeded);
    }
    auto reads = spawn([&, &socket = left] {
      EXPECT_THROW(asio::async_read(socket, asio::buffer(data), use_fiber), operation_cancelled);
      // Nothing is started in a fiber that was asked to stop.
      bool started = false;
      EXPECT_THROW(operation<void()>(use_fiber, [&](auto) { started = true; }), operation_cancelled);
      EXPECT_FALSE(started);
    });
    wait_until_others_wait();
    reads.request_stop();
    reads.get();
    // The operation has ended, so the socket is free for another.
    auto answers = spawn([&socket = right] { echo(socket); });
    EXPECT_EQ(asio::async_write(left, asio::buffer("x", 1), use_fiber), 1u);
    EXPECT_EQ(asio::async_read(left, asio::buffer(data, 1), use_fiber), 1u);
    left.close();
    answers.get();
  });
}

// A cancellation waits for the end of the operation, and gives its result if it has one.
TEST_P(AsioFiber, CancellationAwaitsTheEnd) {
  asio::steady_timer gate(io_);
  std::atomic<bool> cancelled{false};
  run([&] {
    for (const bool aborts : {true, false}) {
      cancelled = false;
      bool ended = false;
      const auto start = [&] {
        auto implementation = [&, step = 0](auto& self, error_code = {}) mutable {
          switch (step++) {
            case 0:
              self.reset_cancellation_state(asio::enable_total_cancellation());
              gate.expires_after(1h);
              return gate.async_wait(std::move(self));
            case 1:
              cancelled = self.cancelled() == asio::cancellation_type::total;
              gate.expires_after(2ms);
              self.reset_cancellation_state(asio::disable_cancellation());
              return gate.async_wait(std::move(self));
            default: ended = true; self.complete(aborts ? error_code(asio::error::operation_aborted) : error_code(), 4);
          }
        };
        use_fiber_t token = use_fiber.cancelled_by(asio::cancellation_type::total);
        return asio::async_compose<use_fiber_t, void(error_code, int)>(std::move(implementation), token, gate);
      };
      auto waits = spawn(start);
      wait_until_others_wait();
      waits.request_stop();
      if (aborts) {
        EXPECT_THROW(waits.get(), operation_cancelled);
      } else {
        EXPECT_EQ(waits.get(), 4);
      }
      EXPECT_TRUE(cancelled);
      EXPECT_TRUE(ended);
    }
  });
}

// An operation without an executor cannot be cancelled.
TEST_P(AsioFiber, WaitsForWhatCannotBeCancelled) {
  asio::steady_timer timer(io_, 1h);
  run([&] {
    auto waits = spawn([&] {
      return operation<void(error_code, int)>(use_fiber, [&](auto handler) {
        timer.async_wait([handler = std::move(handler)](error_code) mutable { std::move(handler)(error_code(), 6); });
      });
    });
    wait_until_others_wait();
    waits.request_stop();
    wait_until_others_wait();
    EXPECT_FALSE(waits.done());
    asio::post(io_, [&] { timer.cancel(); });
    EXPECT_EQ(waits.get(), 6);
  });
}

// A stop and the end of the operation come together.
TEST_P(AsioFiber, StopMeetsTheEnd) {
  run([&] {
    std::minstd_rand random;
    int ended = 0, stopped = 0;
    for (int round = 0; round < 300; ++round) {
      const auto wait = std::chrono::microseconds(random() % 200);
      auto waits = spawn([&] {
        asio::steady_timer timer(io_, wait);
        timer.async_wait(use_fiber);
      });
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 300);
      while (std::chrono::steady_clock::now() < until) this_fiber::yield();
      waits.request_stop();
      try {
        waits.get();
        ++ended;
      } catch (const operation_cancelled&) {
        ++stopped;
      }
    }
    EXPECT_EQ(ended + stopped, 300);
  });
}

TEST_P(AsioFiber, RefusesToWaitUnderNoSuspend) {
  run([&] {
    const no_suspend_scope stays;
    bool started = false;
    EXPECT_THROW(operation<void()>(use_fiber, [&](auto) { started = true; }), usage_error);
    EXPECT_FALSE(started);
  });
}

// Each of several threads may run the io_context if its objects are on strands.
TEST_P(AsioFiber, WorksWithManyThreadsAndStrands) {
  asio::io_context many(3);
  const io_context_thread first(many), second(many), third(many);
  run([&] {
    tcp::acceptor acceptor(asio::make_strand(many), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    task_group group;
    for (int client = 0; client < 6; ++client) {
      tcp::socket left(asio::make_strand(many));
      auto accepts = spawn([&] { return acceptor.async_accept(asio::make_strand(many), use_fiber); });
      left.async_connect(acceptor.local_endpoint(), use_fiber);
      group.spawn([socket = accepts.get()]() mutable { echo(socket); });
      group.spawn([socket = std::move(left)]() mutable {
        char data[4];
        for (int i = 0; i < 10; ++i) {
          EXPECT_THROW(timeout(100us, [&] { socket.async_read_some(asio::buffer(data), use_fiber); }),
                       deadline_exceeded);
          EXPECT_EQ(asio::async_write(socket, asio::buffer("ping", 4), use_fiber), 4u);
          EXPECT_EQ(asio::async_read(socket, asio::buffer(data), use_fiber), 4u);
        }
      });
    }
    group.wait();
  });
}

}  // namespace
