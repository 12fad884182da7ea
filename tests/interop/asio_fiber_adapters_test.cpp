// Asio's adapters of completion tokens on use_fiber, and its resolver.

#include "interop/asio_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// With two sockets that are connected.
class AsioAdapters : public AsioTest {
 protected:
  void connect() {
    tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    auto accepts = spawn([&] { acceptor.async_accept(right_, use_fiber); });
    left_.async_connect(acceptor.local_endpoint(), use_fiber);
    accepts.get();
  }
  // `waits` is asked to stop, but goes on until its data come.
  template <class Handle>
  void expect_stop_cancels_nothing(Handle& waits, std::string_view data) {
    wait_until_others_wait();
    waits.request_stop();
    wait_until_others_wait();
    EXPECT_FALSE(waits.done());
    asio::async_write(right_, asio::buffer(data), use_fiber);
  }

  tcp::socket left_{io_}, right_{io_};
  char data_[4] = {};
};
ULEXITE_TEST_WORKERS(AsioAdapters);

TEST_P(AsioAdapters, RedirectsErrors) {
  run([&] {
    connect();
    error_code error = asio::error::eof;
    asio::async_write(right_, asio::buffer("data", 4), asio::redirect_error(use_fiber, error));
    EXPECT_FALSE(error);
    EXPECT_EQ(asio::async_read(left_, asio::buffer(data_), asio::redirect_error(use_fiber, error)), 4u);
    EXPECT_THROW(
        timeout(2ms, [&] { left_.async_read_some(asio::buffer(data_), asio::redirect_error(use_fiber, error)); }),
        deadline_exceeded);
    right_.close();
    EXPECT_EQ(left_.async_read_some(asio::buffer(data_), asio::redirect_error(use_fiber, error)), 0u);
    EXPECT_EQ(error, asio::error::eof);
  });
}

TEST_P(AsioAdapters, MakesTuples) {
  run([&] {
    connect();
    EXPECT_EQ(asio::async_write(right_, asio::buffer("data", 4), asio::as_tuple(use_fiber)),
              std::tuple(error_code(), 4u));
    auto [error, size] = asio::async_read(left_, asio::buffer(data_), asio::as_tuple(use_fiber));
    EXPECT_EQ(size, 4u);
    EXPECT_FALSE(error);
    EXPECT_THROW(timeout(2ms, [&] { left_.async_read_some(asio::buffer(data_), asio::as_tuple(use_fiber)); }),
                 deadline_exceeded);
    right_.close();
    std::tie(error, size) = left_.async_read_some(asio::buffer(data_), asio::as_tuple(use_fiber));
    EXPECT_EQ(error, asio::error::eof);

    asio::as_tuple_t<use_fiber_t>::as_default_on_t<asio::steady_timer> timer(io_, 1h);
    EXPECT_THROW(timeout(2ms, [&] { timer.async_wait(); }), deadline_exceeded);
    timer.expires_after(1ms);
    EXPECT_EQ(timer.async_wait(), std::tuple(error_code()));
    auto in_tuples = asio::as_tuple(use_fiber);
    // a handler that nobody calls
    EXPECT_EQ((asio::async_initiate<asio::as_tuple_t<use_fiber_t>, void(error_code, int)>([](auto) {}, in_tuples)),
              std::tuple(error_code(asio::error::operation_aborted), 0));
    // a signature without an error
    EXPECT_EQ((asio::async_initiate<asio::as_tuple_t<use_fiber_t>, void(int)>(
                  [](auto handler) { std::move(handler)(3); }, in_tuples)),
              std::tuple(3));
  });
}

// Whose steps run elsewhere than their cancellation would.
TEST_P(AsioAdapters, BindsExecutors) {
  run([&] {
    connect();
    const fiber_executor workers;
    auto waits =
        spawn([&] { return asio::async_read(left_, asio::buffer(data_), asio::bind_executor(workers, use_fiber)); });
    expect_stop_cancels_nothing(waits, "data");
    EXPECT_EQ(waits.get(), 4u);
    const auto strand = asio::make_strand(workers);
    auto again = spawn([&] {
      return asio::async_read(left_, asio::buffer(data_), asio::bind_executor(strand, asio::as_tuple(use_fiber)));
    });
    expect_stop_cancels_nothing(again, "more");
    EXPECT_EQ(again.get(), std::tuple(error_code(), 4u));
    right_.close();
    error_code error;
    EXPECT_EQ(left_.async_read_some(asio::buffer(data_), asio::bind_executor(workers, use_fiber(error))), 0u);
    EXPECT_EQ(error, asio::error::eof);
  });
}

TEST_P(AsioAdapters, BindsSlots) {
  run([&] {
    connect();
    asio::cancellation_signal signal;
    error_code error;
    auto waits = spawn([&] {
      left_.async_read_some(asio::buffer(data_), asio::bind_cancellation_slot(signal.slot(), use_fiber(error)));
    });
    wait_until_others_wait();
    asio::post(io_, [&] { signal.emit(asio::cancellation_type::terminal); });
    waits.get();
    EXPECT_EQ(error, asio::error::operation_aborted);
    auto again = spawn([&] {
      return asio::async_read(left_, asio::buffer(data_), asio::bind_cancellation_slot(signal.slot(), use_fiber));
    });
    expect_stop_cancels_nothing(again, "data");
    EXPECT_EQ(again.get(), 4u);
  });
}

TEST_P(AsioAdapters, IsADefaultAndDefers) {
  run([&] {
    connect();
    auto right = use_fiber_t::as_default_on(std::move(right_));
    EXPECT_EQ(right.async_write_some(asio::buffer("data", 4)), 4u);
    EXPECT_EQ(asio::async_read(left_, asio::buffer(data_), asio::deferred)(use_fiber), 4u);
    EXPECT_THROW(timeout(2ms, [&] { left_.async_read_some(asio::buffer(data_), asio::deferred)(use_fiber); }),
                 deadline_exceeded);
    EXPECT_THROW(timeout(2ms, [&] { right.async_read_some(asio::buffer(data_)); }), deadline_exceeded);
  });
}

TEST_P(AsioAdapters, ResolvesAndConnects) {
  run([&] {
    tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const std::string port = std::to_string(acceptor.local_endpoint().port());
    tcp::resolver resolver(io_);
    auto accepts = spawn([&] { acceptor.async_accept(right_, use_fiber); });
    const auto found = resolver.async_resolve("localhost", port, use_fiber);
    EXPECT_EQ(asio::async_connect(left_, found, use_fiber), acceptor.local_endpoint());
    accepts.get();
    error_code error;
    EXPECT_TRUE(resolver.async_resolve("no address", port, tcp::resolver::numeric_host, use_fiber(error)).empty());
    EXPECT_EQ(error, asio::error::host_not_found);
  });
}

// A resolver has no cancellation of its own operations. So one that was begun is awaited, and gives its result.
TEST_P(AsioAdapters, AwaitsAResolverThatIsStopped) {
  run([&] {
    for (int round = 0; round < 20; ++round) {
      bool found = false;
      tcp::resolver resolver(io_);
      auto waits = spawn([&] { found = !resolver.async_resolve("localhost", "80", use_fiber).empty(); });
      for (int i = round; i > 0; --i) this_fiber::yield();
      waits.request_stop();
      try {
        waits.get();
        EXPECT_TRUE(found);
      } catch (const operation_cancelled&) {
        EXPECT_FALSE(found);
      }
    }
  });
}

}  // namespace
