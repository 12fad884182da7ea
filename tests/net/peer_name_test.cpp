// The names in the errors of sockets: their peers.

#include "net_fixture.hpp"

#include "support/cancellation.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/net/udp.hpp>
#include <ulexite/sync/event.hpp>

namespace ulexite::test {
namespace {

class PeerName : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(PeerName);

template <class F>
void expect_said(const std::string& wanted, F failing) {
  const std::string said = message_of(failing);
  EXPECT_NE(said.find(wanted), std::string::npos) << "not \"" << wanted << "\", but \"" << said << '"';
}

void read_one(net::tcp_stream& from) {
  char c;
  from.read_some(&c, 1);
}

// The system no longer knows it then.
TEST_P(PeerName, IsToldOfAConnectionThatWasReset) {
  in_runtime([] {
    for (const bool adopted : {false, true}) {
      auto pair = stream_pair::tcp();
      const std::string client = pair.left.local_endpoint().str(), server = pair.right.local_endpoint().str();
      if (adopted) pair.right = net::tcp_stream::adopt(pair.right.release());
      pair.left.abort();
      expect_said("reading from " + client + ":", [&] { read_one(pair.right); });
      expect_said("writing to " + client + ":", [&] { pair.right.write("x"); });
      expect_said("reading from " + server + ":", [&] { read_one(pair.left); });  // closed here
      pair.right.close();
      expect_said("setting SO_RCVBUF for " + client + ":", [&] { pair.right.set_receive_buffer(1000); });
    }
  });
}

TEST_P(PeerName, OfAUnixSocketIsThatOfTheListener) {
  in_runtime([] {
    const std::string at = "unix:" + scratch_path("peer_name");
    net::tcp_listener listener(net::endpoint::parse(at));
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    auto server = listener.accept();
    client.expires_after(0s);
    server.expires_after(0s);
    expect_said("reading from " + at + ":", [&] { read_one(client); });
    expect_said("reading from a peer of " + at + ":", [&] { read_one(server); });
    auto pair = stream_pair::unix_sockets();
    pair.left.expires_after(0s);
    expect_said("reading from fd " + std::to_string(pair.left.native_handle()) + ":", [&] { read_one(pair.left); });
    net::tcp_stream none;
    expect_said("reading from a socket that is none:", [&] { read_one(none); });
  });
}

TEST_P(PeerName, OfDatagramsIsTheOneThatConnectFixed) {
  in_runtime([] {
    char c = 0;
    net::udp_socket socket(loopback());
    const std::string own = socket.local_endpoint().str();
    socket.expires_after(0s);
    expect_said("receiving from a peer of " + own + ":", [&] { socket.receive(&c, 1); });
    expect_said("sending to 127.0.0.1:9:", [&] { socket.send_to("x", net::endpoint::parse("127.0.0.1:9")); });
    socket.connect(net::endpoint::parse("127.0.0.1:9"));
    expect_said("receiving from 127.0.0.1:9:", [&] { socket.receive(&c, 1); });
    expect_said("sending to 127.0.0.1:9:", [&] { socket.send("x"); });
  });
}

// The error for a second reader names the connection.
TEST_P(PeerName, IsPartOfAUsageError) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    std::string said;
    event told;
    const auto read = [&] {
      try {
        read_one(pair.right);
      } catch (const usage_error& error) {
        said = error.what();
        told.set();
      }
    };
    auto one = spawn(read), other = spawn(read);
    told.wait();
    EXPECT_NE(said.find("connected with " + pair.left.local_endpoint().str()), said.npos) << said;
    pair.left.close();
    one.join();
    other.join();
  });
}

}  // namespace
}  // namespace ulexite::test
