// Boost.Beast over fibers.

#include "net_fixture.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/sync/when.hpp>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <mutex>

namespace ulexite::test {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

static_assert(beast::is_sync_stream<asio_stream>::value);

class AsioStream : public NetTest {
 protected:
  // The inert io_context is made once, with the first timer, and its descriptors stay open.
  void SetUp() override {
    net::tcp_stream none;
    const websocket::stream<asio_stream> first{asio_stream(none)};
  }
};
ULEXITE_ON_ALL_WORKER_COUNTS(AsioStream);

http::response<http::string_body> answer(const http::request<http::string_body>& request) {
  http::response<http::string_body> made(http::status::ok, request.version());
  made.body() = "you said " + request.body();
  made.prepare_payload();
  return made;
}

TEST_P(AsioStream, CarriesHttp) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto server = spawn([&] {
      asio_stream stream(pair.right);
      beast::flat_buffer buffer;
      for (;;) {
        http::request<http::string_body> request;
        boost::system::error_code error;
        http::read(stream, buffer, request, error);
        if (error) return error;
        http::write(stream, answer(request));
      }
    });
    asio_stream stream(pair.left);
    beast::flat_buffer buffer;
    for (const std::string text : {"one", "two", "three"}) {
      http::request<http::string_body> request(http::verb::post, "/", 11, text);
      request.prepare_payload();
      http::write(stream, request);
      http::response<http::string_body> response;
      http::read(stream, buffer, response);
      EXPECT_EQ(response.body(), "you said " + text);
    }
    pair.left.close();
    EXPECT_EQ(server.get(), http::error::end_of_stream);
  });
}

TEST_P(AsioStream, CarriesWebsockets) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto server = spawn([&] {
      websocket::stream<asio_stream> socket{asio_stream(pair.right)};
      socket.accept();
      for (boost::system::error_code error;;) {
        beast::flat_buffer message;
        socket.read(message, error);
        if (error) return error;
        socket.write(message.data());
      }
    });
    websocket::stream<asio_stream> socket{asio_stream(pair.left)};
    socket.handshake("localhost", "/");
    const std::string text(100'000, 'x');
    socket.write(boost::asio::buffer(text));
    beast::flat_buffer message;
    socket.read(message);
    EXPECT_EQ(beast::buffers_to_string(message.data()), text);
    socket.close(websocket::close_code::normal);
    EXPECT_EQ(server.get(), websocket::error::closed);
  });
}

// Either side has a reader and a writer. A frame inside another frame would end the connection. The pongs of the reader
// on the right meet the messages of its writer. The long messages from the left wait for room in the middle.
TEST_P(AsioStream, LetsTwoFibersReadAndWriteAWebsocket) {
  struct side {
    explicit side(net::tcp_stream& tcp) : socket(asio_stream(tcp, guard)) {}
    void write(int count, std::size_t size, bool with_pings) {
      const std::string text(size, 'x');
      for (int i = 0; i < count; ++i) {
        const std::lock_guard lock(guard);
        if (with_pings) socket.ping({});
        socket.write(boost::asio::buffer(text));
      }
    }
    // Until the connection ends.
    int messages_read() {
      const std::lock_guard lock(guard);
      socket.control_callback([&](auto type, auto) { pongs += type == websocket::frame_type::pong; });
      for (int messages = 0;; ++messages) {
        beast::flat_buffer message;
        boost::system::error_code error;
        socket.read(message, error);
        if (!error) continue;
        EXPECT_EQ(error, boost::asio::error::eof);
        return messages;
      }
    }
    mutex guard;
    websocket::stream<asio_stream> socket;
    int pongs = 0;
  };
  in_runtime([] {
    auto pair = stream_pair::tcp();
    side left(pair.left), right(pair.right);
    when_all(
        [&] {
          const std::lock_guard lock(right.guard);
          right.socket.accept();
        },
        [&] {
          const std::lock_guard lock(left.guard);
          left.socket.handshake("localhost", "/");
        });
    auto left_read = spawn([&] { return left.messages_read(); });
    auto right_read = spawn([&] { return right.messages_read(); });
    when_all([&] { left.write(30, 1'000'000, true); }, [&] { right.write(200, 100, false); });
    pair.left.shutdown_write();
    EXPECT_EQ(right_read.get(), 30);
    pair.right.shutdown_write();
    EXPECT_EQ(left_read.get(), 200);
    EXPECT_EQ(left.pongs, 30);
  });
}

TEST_P(AsioStream, TranslatesErrors) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    asio_stream stream(pair.left);
    char c;
    boost::system::error_code error;
    pair.left.expires_after(1ms);
    stream.read_some(boost::asio::buffer(&c, 1), error);
    EXPECT_EQ(error, boost::asio::error::timed_out);
    pair.left.expires_never();
    auto reader = spawn([&] { stream.read_some(boost::asio::buffer(&c, 1)); });
    let_others_run();
    reader.request_stop();
    EXPECT_THROW(reader.get(), operation_cancelled);
    pair.right.close();
    stream.read_some(boost::asio::buffer(&c, 1), error);
    EXPECT_EQ(error, boost::asio::error::eof);
    pair.left.close();
    EXPECT_THROW(stream.write_some(boost::asio::buffer(&c, 1)), boost::system::system_error);
  });
}

}  // namespace
}  // namespace ulexite::test
