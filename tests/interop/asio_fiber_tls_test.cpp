// Boost.Asio's TLS streams in fibers.

#include "interop/asio_fixture.hpp"
#include "net/tls_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <string>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using secure = ssl::stream<tcp::socket>;

class AsioFiberTls : public AsioTest {
 protected:
  AsioFiberTls() {
    serving_.use_certificate_file(mine->certificate, ssl::context::pem);
    serving_.use_private_key_file(mine->key, ssl::context::pem);
    trusting_.load_verify_file(mine->certificate);
  }
  static void SetUpTestSuite() { mine = new identity; }
  static void TearDownTestSuite() { delete std::exchange(mine, nullptr); }

  // The two ends of a connection, before the handshake.
  std::pair<secure, secure> connected() {
    tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    secure client = client_of(tcp::socket(io_));
    auto accepts = spawn([&] { return acceptor.async_accept(use_fiber); });
    client.next_layer().async_connect(acceptor.local_endpoint(), use_fiber);
    return {std::move(client), secure(accepts.get(), serving_)};
  }
  secure client_of(tcp::socket socket) {
    secure made(std::move(socket), trusting_);
    made.set_verify_mode(ssl::verify_peer);
    made.set_verify_callback(ssl::host_name_verification("localhost"));
    return made;
  }
  static void shake_hands(secure& client, secure& server) {
    auto accepts = spawn([&] { server.async_handshake(secure::server, use_fiber); });
    client.async_handshake(secure::client, use_fiber);
    accepts.get();
  }

  // Echoes until the client shuts the connection down.
  static void echo(secure& stream) {
    char data[5000];
    error_code error;
    while (const std::size_t n = stream.async_read_some(asio::buffer(data), use_fiber(error)))
      asio::async_write(stream, asio::buffer(data, n), use_fiber);
    EXPECT_EQ(error, asio::error::eof);
    stream.async_shutdown(use_fiber(error));
  }
  // Expects `bytes` to come back.
  static void ask(secure& stream, const std::string& bytes) {
    EXPECT_EQ(asio::async_write(stream, asio::buffer(bytes), use_fiber), bytes.size());
    std::string back(bytes.size(), ' ');
    EXPECT_EQ(asio::async_read(stream, asio::buffer(back), use_fiber), bytes.size());
    EXPECT_EQ(back, bytes);
  }

  static inline identity* mine = nullptr;
  ssl::context serving_{ssl::context::tls_server}, trusting_{ssl::context::tls_client};
};
ULEXITE_TEST_WORKERS(AsioFiberTls);

TEST_P(AsioFiberTls, HandshakesEchoesAndShutsDown) {
  run([&] {
    task_group group;
    for (int i = 0; i < 3; ++i) {
      auto [left, right] = connected();
      group.spawn([stream = std::move(right)]() mutable {
        stream.async_handshake(secure::server, use_fiber);
        echo(stream);
      });
      group.spawn([stream = std::move(left)]() mutable {
        stream.async_handshake(secure::client, use_fiber);
        for (const std::size_t size : {1u, 100u, 40'000u}) ask(stream, std::string(size, 'x'));
        stream.async_shutdown(use_fiber);
      });
    }
    group.wait();
  });
}

TEST_P(AsioFiberTls, RefusesACertificateOfOthers) {
  run([&] {
    auto [client, server] = connected();
    client.set_verify_callback(ssl::host_name_verification("example.com"));
    auto accepts = spawn([&, &stream = server] {
      error_code error;
      stream.async_handshake(secure::server, use_fiber(error));
      return error;
    });
    try {
      client.async_handshake(secure::client, use_fiber);
      ADD_FAILURE() << "a handshake with another host";
    } catch (const boost::system::system_error& error) {
      EXPECT_NE(std::string(error.what()).find("certificate verify failed"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(accepts.get());
  });
}

// The peer says nothing.
TEST_P(AsioFiberTls, CancelsHandshakes) {
  run([&] {
    {
      auto [client, server] = connected();
      EXPECT_THROW(timeout(2ms, [&, &stream = client] { stream.async_handshake(secure::client, use_fiber); }),
                   deadline_exceeded);
    }
    auto [client, server] = connected();
    auto accepts = spawn([&, &stream = server] { stream.async_handshake(secure::server, use_fiber); });
    wait_until_others_wait();
    accepts.request_stop();
    EXPECT_THROW(accepts.get(), operation_cancelled);
    client.next_layer().close();
  });
}

TEST_P(AsioFiberTls, CancelsReadsAndShutdowns) {
  run([&] {
    auto [client, server] = connected();
    shake_hands(client, server);
    char data[4];
    for (int i = 0; i < 3; ++i) {
      EXPECT_THROW(timeout(2ms, [&, &stream = client] { asio::async_read(stream, asio::buffer(data), use_fiber); }),
                   deadline_exceeded);
      // the stream goes on as before
      asio::async_write(server, asio::buffer("data", 4), use_fiber);
      EXPECT_EQ(asio::async_read(client, asio::buffer(data), use_fiber), 4u);
    }
    // waits for the answer of the peer
    EXPECT_THROW(timeout(2ms, [&, &stream = client] { stream.async_shutdown(use_fiber); }), deadline_exceeded);
    error_code error;
    server.async_read_some(asio::buffer(data), use_fiber(error));
    EXPECT_EQ(error, asio::error::eof);
  });
}

TEST_P(AsioFiberTls, CancelsWrites) {
  run([&] {
    auto [client, server] = connected();
    shake_hands(client, server);
    const std::string much(20'000'000, 'x');  // more than the sockets take
    auto writes = spawn([&, &stream = client] { asio::async_write(stream, asio::buffer(much), use_fiber); });
    wait_until_others_wait();
    writes.request_stop();
    EXPECT_THROW(writes.get(), operation_cancelled);
  });
}

// Several threads run the io_context, and each stream is on a strand.
TEST_P(AsioFiberTls, WorksOnStrands) {
  asio::io_context many(3);
  const io_context_thread first(many), second(many), third(many);
  run([&] {
    tcp::acceptor acceptor(asio::make_strand(many), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    task_group group;
    for (int i = 0; i < 4; ++i) {
      tcp::socket socket(asio::make_strand(many));
      auto accepts = spawn([&] { return acceptor.async_accept(asio::make_strand(many), use_fiber); });
      socket.async_connect(acceptor.local_endpoint(), use_fiber);
      group.spawn([stream = secure(accepts.get(), serving_)]() mutable {
        stream.async_handshake(secure::server, use_fiber);
        echo(stream);
      });
      group.spawn([stream = client_of(std::move(socket))]() mutable {
        stream.async_handshake(secure::client, use_fiber);
        char data[4];
        for (int k = 0; k < 5; ++k) {
          EXPECT_THROW(timeout(100us, [&] { stream.async_read_some(asio::buffer(data), use_fiber); }),
                       deadline_exceeded);
          ask(stream, "ping");
        }
        stream.async_shutdown(use_fiber);
      });
    }
    group.wait();
  });
}

}  // namespace
