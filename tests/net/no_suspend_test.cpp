// no_suspend_scope: operations on sockets and descriptors that would have to wait throw, and can be made again.

#include "net_fixture.hpp"

#include "support/refused_wait.hpp"

#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/sync/cancellation.hpp>

namespace ulexite::test {
namespace {

class NoSuspendNet : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(NoSuspendNet);

TEST_P(NoSuspendNet, SocketsRefuseToWait) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    char byte = 0;
    std::error_code error;
    for (const bool shielded : {false, true}) {
      const std::optional<shield> hidden = shielded ? std::optional<shield>(std::in_place) : std::nullopt;
      expect_refused([&] { pair.left.read_some(&byte, 1); }, "to read");
      expect_refused([&] { pair.left.read_some(&byte, 1, error); }, "to read");
    }
    net::tcp_listener listener(loopback());
    expect_refused([&] { static_cast<void>(listener.accept()); }, "to read");
    const std::string much(50'000'000, 'x');
    expect_refused([&] { pair.left.write(much); }, "to write");

    pair.right.write("y");
    {
      const no_suspend_scope stays;
      pair.right.expires_after(bound);
    }
    EXPECT_EQ(pair.left.read_some(&byte, 1), 1u);
    EXPECT_EQ(byte, 'y');
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    EXPECT_TRUE(listener.accept().is_open());
  });
}

}  // namespace
}  // namespace ulexite::test
