// Boost.Beast's websockets in fibers.

#include "interop/asio_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket.hpp>

#include <string>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;
using socket = websocket::stream<beast::tcp_stream>;

class AsioFiberWebsocket : public AsioTest {
 protected:
  // The two ends of a connection, before the handshake.
  std::pair<socket, socket> connected() {
    tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    socket client(io_);
    auto accepts = spawn([&] { return acceptor.async_accept(use_fiber); });
    client.next_layer().async_connect(acceptor.local_endpoint(), use_fiber);
    return {std::move(client), socket(accepts.get())};
  }
  // The same after it.
  std::pair<socket, socket> opened() {
    auto both = connected();
    auto accepts = spawn([&] { both.second.async_accept(use_fiber); });
    both.first.async_handshake("localhost", "/", use_fiber);
    accepts.get();
    return both;
  }

  static void echo(socket& peer) {
    beast::flat_buffer buffer;
    error_code error;
    for (;;) {
      peer.async_read(buffer, use_fiber(error));
      if (error) break;
      peer.text(peer.got_text());
      peer.async_write(buffer.data(), use_fiber);
      buffer.clear();
    }
    EXPECT_EQ(error, websocket::error::closed);
  }
  static std::string read(socket& from) {
    beast::flat_buffer buffer;
    from.async_read(buffer, use_fiber);
    return beast::buffers_to_string(buffer.data());
  }
  static void ask(socket& stream, const std::string& text) {
    EXPECT_EQ(stream.async_write(asio::buffer(text), use_fiber), text.size());
    EXPECT_EQ(read(stream), text);
  }
};
ULEXITE_TEST_WORKERS(AsioFiberWebsocket);

TEST_P(AsioFiberWebsocket, CarriesMessagesAndCloses) {
  run([&] {
    task_group group;
    for (int i = 0; i < 3; ++i) {
      auto [left, right] = connected();
      group.spawn([peer = std::move(right)]() mutable {
        peer.async_accept(use_fiber);
        echo(peer);
        EXPECT_EQ(peer.reason().code, websocket::close_code::going_away);
      });
      group.spawn([client = std::move(left)]() mutable {
        websocket::response_type response;
        client.async_handshake(response, "localhost", "/chat", use_fiber);
        EXPECT_EQ(response.result_int(), 101u);
        client.auto_fragment(true);
        for (const std::size_t size : {1u, 100u, 30'000u}) ask(client, std::string(size, 'x'));
        client.binary(true);
        ask(client, std::string(3, '\0'));
        EXPECT_TRUE(client.got_binary());
        client.async_ping("are you there", use_fiber);
        ask(client, "yes");
        client.async_close(websocket::close_code::going_away, use_fiber);
      });
    }
    group.wait();
  });
}

TEST_P(AsioFiberWebsocket, CancelsHandshakes) {
  run([&] {
    auto [client, peer] = connected();
    EXPECT_THROW(timeout(2ms, [&, &stream = client] { stream.async_handshake("localhost", "/", use_fiber); }),
                 deadline_exceeded);
    auto [silent, asked] = connected();
    auto accepts = spawn([&, &stream = asked] { stream.async_accept(use_fiber); });
    wait_until_others_wait();
    accepts.request_stop();
    EXPECT_THROW(accepts.get(), operation_cancelled);
  });
}

TEST_P(AsioFiberWebsocket, CancelsReadsAndCloses) {
  run([&] {
    auto [client, peer] = opened();
    auto reads = spawn([&, &stream = peer] { read(stream); });
    EXPECT_THROW(timeout(2ms, [&, &stream = client] { read(stream); }), deadline_exceeded);
    wait_until_others_wait();
    reads.request_stop();
    EXPECT_THROW(reads.get(), operation_cancelled);
    error_code error;
    client.async_close(websocket::close_code::normal, use_fiber(error));
    EXPECT_EQ(error, asio::error::operation_aborted) << "Beast uses a websocket no more after that";

    auto [closing, silent] = opened();
    EXPECT_THROW(timeout(2ms, [&, &stream = closing] { stream.async_close(websocket::close_code::normal, use_fiber); }),
                 deadline_exceeded);
  });
}

}  // namespace
