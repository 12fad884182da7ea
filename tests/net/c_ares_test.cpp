// c-ares over the waits of a fiber: names are resolved without blocking a worker.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <ares.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

namespace ulexite::test {
namespace {

// A DNS server on loopback: its socket, and what it makes of a query.
class name_server {
 public:
  name_server() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  name_server(const name_server&) = delete;
  name_server& operator=(const name_server&) = delete;
  ~name_server() { ::close(fd_); }

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  struct query {
    sockaddr_in from;
    std::string bytes;
    std::string host;  // the first label of the name
  };
  // A cancellation point.
  query receive() const {
    for (std::array<char, 512> buffer;;) {
      net::wait_fd(fd_, net::interest::read);
      query got{};
      socklen_t size = sizeof got.from;
      const ssize_t length =
          ::recvfrom(fd_, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&got.from), &size);
      if (length < 13) continue;
      got.bytes.assign(buffer.data(), static_cast<std::size_t>(length));
      got.host = got.bytes.substr(13, static_cast<unsigned char>(got.bytes[12]));
      return got;
    }
  }

  // With 10.0.0.N for "hostN", and else that there is no such name.
  void answer(const query& asked) const {
    const bool known = asked.host.starts_with("host");
    std::string made = asked.bytes.substr(0, asked.bytes.find('\0', 12) + 5);  // header and question
    const std::string flags{'\x81', known ? '\x80' : '\x83'};
    made.replace(2, 2, flags);
    made.replace(4, 8, std::string{0, 1, 0, known ? '\1' : '\0', 0, 0, 0, 0});
    if (known) {
      const auto last = static_cast<char>(std::stoi(asked.host.substr(4)));
      made += std::string{'\xc0', 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, last};  // name, A, IN, 60 s, 4 bytes
    }
    ::sendto(fd_, made.data(), made.size(), 0, reinterpret_cast<const sockaddr*>(&asked.from), sizeof asked.from);
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// Resolves names: c-ares says which descriptors and which time it waits for, the fiber waits.
class resolver {
 public:
  explicit resolver(const std::string& server, int timeout_ms = 20'000) {
    ares_options options{};
    options.flags = ARES_FLAG_NOSEARCH;
    options.timeout = timeout_ms;
    options.tries = 2;
    options.lookups = lookups_;
    options.sock_state_cb = [](void* self, ares_socket_t fd, int read, int write) {
      auto& wanted = static_cast<resolver*>(self)->wanted_;
      wanted[fd] = static_cast<net::interest>((read != 0 ? 1 : 0) | (write != 0 ? 2 : 0));
      if (wanted[fd] == net::interest::none) wanted.erase(fd);
    };
    options.sock_state_cb_data = this;
    const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    EXPECT_EQ(ares_init_options(&channel_, &options, mask), ARES_SUCCESS);
    EXPECT_EQ(ares_set_servers_ports_csv(channel_, server.c_str()), ARES_SUCCESS);
  }
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;
  ~resolver() { ares_destroy(channel_); }

  void ask(const std::string& name) {
    ++pending_;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_INET;
    ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, &on_answer, this);
  }

  // Until all have been answered: the addresses, and the messages of what failed, sorted. A cancellation point.
  std::multiset<std::string> run() {
    while (pending_ > 0) {
      std::vector<net::fd_interest> fds;
      for (const auto& [fd, wanted] : wanted_) fds.push_back({fd, wanted});
      timeval left{};
      auto deadline = steady_clock::time_point::max();
      if (ares_timeout(channel_, nullptr, &left) != nullptr)
        deadline = steady_clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec);
      if (net::wait_any(fds, deadline) == 0) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      for (const net::fd_interest& each : fds)
        if (each.ready != net::interest::none)
          ares_process_fd(channel_,
                          (each.ready & net::interest::read) != net::interest::none ? each.fd : ARES_SOCKET_BAD,
                          (each.ready & net::interest::write) != net::interest::none ? each.fd : ARES_SOCKET_BAD);
    }
    return std::move(results_);
  }

 private:
  static void on_answer(void* self, int status, int, ares_addrinfo* found) {
    auto& mine = *static_cast<resolver*>(self);
    --mine.pending_;
    char text[INET_ADDRSTRLEN] = "";
    if (status == ARES_SUCCESS) {
      sockaddr_in at{};
      std::memcpy(&at, found->nodes->ai_addr, sizeof at);
      ::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
    }
    mine.results_.insert(status == ARES_SUCCESS ? text : ares_strerror(status));
    ares_freeaddrinfo(found);
  }

  char lookups_[2] = "b";
  ares_channel channel_ = nullptr;
  std::map<int, net::interest> wanted_;
  int pending_ = 0;
  std::multiset<std::string> results_;
};

class CAres : public NetTest {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(ares_library_init(ARES_LIB_INIT_ALL), ARES_SUCCESS); }
  static void TearDownTestSuite() { ares_library_cleanup(); }
};
ULEXITE_ON_ALL_WORKER_COUNTS(CAres);

// The server answers none before it has got them all, and then the last one first.
TEST_P(CAres, ManyQuestionsAtATime) {
  in_runtime([] {
    constexpr int count = 20;
    const name_server server;
    auto answering = spawn([&] {
      std::map<std::string, name_server::query> asked;  // a repeated query counts once
      while (asked.size() < count) {
        auto query = server.receive();
        asked.insert_or_assign(query.host, query);
      }
      for (auto each = asked.rbegin(); each != asked.rend(); ++each) server.answer(each->second);
    });
    resolver names(server.address());
    std::multiset<std::string> expected;
    for (int i = 1; i < count; ++i) {
      names.ask("host" + std::to_string(i) + ".test");
      expected.insert("10.0.0." + std::to_string(i));
    }
    names.ask("nobody.test");
    expected.insert(ares_strerror(ARES_ENOTFOUND));
    EXPECT_EQ(timeout(bound, [&] { return names.run(); }), expected);
    answering.get();
  });
}

TEST_P(CAres, ManyFibersEachWithAChannelOfItsOwn) {
  in_runtime([] {
    const name_server server;
    auto answering = spawn([&] {
      for (;;) server.answer(server.receive());
    });
    scope([&](task_group& clients) {
      for (int i = 1; i <= 10; ++i) {
        clients.spawn([&, i] {
          resolver names(server.address());
          names.ask("host" + std::to_string(i) + ".test");
          EXPECT_EQ(timeout(bound, [&] { return names.run(); }), std::multiset{"10.0.0." + std::to_string(i)});
        });
      }
    });
    answering.request_stop();
    EXPECT_THROW(answering.get(), operation_cancelled);
  });
}

TEST_P(CAres, ItsOwnTimersRun) {
  in_runtime([] {
    const name_server silent;
    resolver names(silent.address(), 10);
    names.ask("host1.test");
    EXPECT_EQ(timeout(bound, [&] { return names.run(); }), std::multiset<std::string>{ares_strerror(ARES_ETIMEOUT)});
  });
}

TEST_P(CAres, AStopEndsAQuestionThatWaits) {
  in_runtime([] {
    const name_server silent;
    auto asking = spawn([&] {
      resolver names(silent.address());
      names.ask("host1.test");
      names.run();
    });
    EXPECT_EQ(silent.receive().host, "host1");
    asking.request_stop();
    EXPECT_THROW(asking.get(), operation_cancelled);
  });
}

}  // namespace
}  // namespace ulexite::test
