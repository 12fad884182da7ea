// Streams with reads that end before the available data: a short read does not mean that nothing is left.

#include "net_fixture.hpp"

#include "support/waiting.hpp"

#include <netinet/in.h>

#include <cstring>

namespace ulexite::test {
namespace {

class ShortRead : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ShortRead);

void send_plainly(int fd, const char* text, int flags = 0) {
  EXPECT_EQ(::send(fd, text, std::strlen(text), flags), static_cast<ssize_t>(std::strlen(text)));
}

// An echo server that has answered waits for an edge, without asking. Then `send_two` sends two pieces of four bytes
// together. With one worker no fiber reads between them, and there is one edge for both.
template <class SendTwo>
void expect_both_pieces(net::tcp_stream& server, int client, SendTwo send_two) {
  char part[100];
  send_plainly(client, "hello");
  EXPECT_EQ(server.read_some(part, sizeof part), 5u);
  server.write(part, 5);
  auto reader = spawn([&] {
    std::string all;
    while (all.size() < 8) {
      char next[100];
      const std::size_t got = server.read_some(next, sizeof next);
      if (got == 0) break;
      all.append(next, got);
      server.write(next, got);
    }
    return all;
  });
  let_others_run();
  send_two();
  EXPECT_EQ(reader.get(), "AAAABBBB");
}

// The connection that `listener` accepts, and its client's descriptor.
struct raw_client {
  explicit raw_client(net::tcp_listener& listener) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::connect(fd, listener.local_endpoint().data(), listener.local_endpoint().size()), 0);
  }
  ~raw_client() { ::close(fd); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  const int fd;
};

TEST_P(ShortRead, OfTcpEndsAtUrgentData) {
  in_runtime([] {
    for (const bool adopted : {false, true}) {
      net::tcp_listener listener(loopback());
      const raw_client client(listener);
      auto server = listener.accept();
      if (adopted) server = net::tcp_stream::adopt(server.release());
      server.expires_after(bound);
      expect_both_pieces(server, client.fd, [&] {
        send_plainly(client.fd, "AAAA");
        send_plainly(client.fd, "X", MSG_OOB);
        send_plainly(client.fd, "BBBB");
      });
    }
  });
}

TEST_P(ShortRead, OfAUnixSocketEndsAtAPassedDescriptor) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    auto server = net::tcp_stream::adopt(ends[0]), client = net::tcp_stream::adopt(ends[1]);
    server.expires_after(bound);
    expect_both_pieces(server, ends[1], [&] {
      char text[] = "AAAA";
      iovec data{text, 4};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
      msghdr message{};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &ends[0], sizeof(int));
      EXPECT_EQ(::sendmsg(ends[1], &message, 0), 4);
      send_plainly(ends[1], "BBBB");
    });
  });
}

}  // namespace
}  // namespace ulexite::test
