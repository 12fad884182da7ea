// Ten thousand clients, most of them silent.

#include "abuse.hpp"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseIdle : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseIdle);

// A value other than zero shows where a client failed.
enum class outcome : int { good, no_server, refused, no_echo, wrong_echo };

// Talks over one connection of the crowd; the connection's number is in each message. Blocks.
outcome talk(int fd, int number, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const int sent[2] = {number, round};
    int received[2] = {};
    if (::send(fd, sent, sizeof sent, MSG_NOSIGNAL) != sizeof sent) return outcome::no_echo;
    if (::recv(fd, received, sizeof received, MSG_WAITALL) != sizeof received) return outcome::no_echo;
    if (std::memcmp(sent, received, sizeof sent) != 0) return outcome::wrong_echo;
  }
  return outcome::good;
}

// The crowd: makes this number of connections and talks over some of them. On request it closes all without a message,
// half of them by a reset.
outcome crowd(const net::endpoint& server, int count, int told_to_leave) {
  std::vector<int> clients;
  for (int i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::connect(fd, server.data(), server.size()) != 0) return outcome::refused;
    clients.push_back(fd);
    // Connections are accepted in their order: so the backlog never fills up.
    if (i % 500 == 0 || i == count - 1)
      if (const outcome o = talk(fd, i, 1); o != outcome::good) return o;
  }
  for (int i = 0; i < count; i += 97)
    if (const outcome o = talk(clients[static_cast<std::size_t>(i)], i, 20); o != outcome::good) return o;
  char word;
  if (::read(told_to_leave, &word, 1) != 1) return outcome::no_server;
  const linger reset{1, 0};
  for (std::size_t i = 0; i < clients.size(); i += 2)
    ::setsockopt(clients[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return outcome::good;
}

// A process of clients. Made before any thread, which a fork would lose.
class crowd_process {
 public:
  explicit crowd_process(int count) {
    EXPECT_EQ(::pipe2(words_, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(end_, O_CLOEXEC), 0);
    child_ = ::fork();
    EXPECT_GE(child_, 0);
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(bound_seconds);
      std::_Exit(static_cast<int>(live(count)));
    }
    ::close(std::exchange(words_[0], -1));
    ::close(std::exchange(end_[1], -1));
  }
  ~crowd_process() {
    ::close(words_[1]);
    ::close(end_[0]);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  crowd_process(const crowd_process&) = delete;
  crowd_process& operator=(const crowd_process&) = delete;

  void go(const net::endpoint& server) {
    EXPECT_EQ(::write(words_[1], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  }
  void leave() { EXPECT_EQ(::write(words_[1], "", 1), 1); }
  [[nodiscard]] bool gave_up() const { return net::wait_fd(end_[0], net::interest::read, 0s) != net::interest::none; }
  // Waits for its end.
  outcome ended() {
    net::wait_fd(end_[0], net::interest::read);
    int status = 0;
    EXPECT_GT(::waitpid(std::exchange(child_, -1), &status, 0), 0);
    EXPECT_TRUE(WIFEXITED(status)) << "the clients died by signal " << WTERMSIG(status);
    return static_cast<outcome>(WEXITSTATUS(status));
  }

 private:
  outcome live(int count) {
    ::close(words_[1]);
    net::endpoint server;
    if (::read(words_[0], static_cast<void*>(&server), sizeof server) != sizeof server) return outcome::no_server;
    return crowd(server, count, words_[0]);
  }

  int words_[2], end_[2];  // its requests; it ends at their end
  pid_t child_;
};

// Half-open connections look like the silent ones here: a client that has ended without a message stays silent.
TEST_P(AbuseIdle, ACrowdOfSilentClientsDoesNotDisturbTheOthers) {
  const descriptor_limit raised;
  const auto count = descriptor_limit::room_for(static_cast<std::size_t>(fibers(times(10'000))));
  crowd_process clients(static_cast<int>(count));
  in_runtime([&] {
    std::atomic<std::size_t> present{0}, gone{0};
    net::serve_options options;
    options.on_error = ignore;
    {
      const service server(
          [&](net::tcp_stream& stream) {
            ++present;
            stream.set_keepalive(true);
            try {
              echo(stream);
            } catch (const std::system_error& error) {
              EXPECT_EQ(error.code(), std::errc::connection_reset);
            }
            --present;
            ++gone;
          },
          options);
      clients.go(server.at());
      wait_until([&] { return present == count || clients.gave_up(); });  // all at a time
      if (present == count) clients.leave();
      EXPECT_EQ(clients.ended(), outcome::good);
      wait_until([&] { return gone == count; });
    }
  });
}

// Each client is connected and says nothing, or a byte now and then. The expiry, or the deadline, ends it.
TEST_P(AbuseIdle, SilentClientsExpire) {
  in_runtime([] {
    const int count = fibers(500);
    std::atomic<int> expired{0};
    net::serve_options options;
    options.on_error = [&](const net::endpoint&, const std::exception_ptr& failure) {
      const auto code = code_of([&] { std::rethrow_exception(failure); });
      EXPECT_EQ(code, std::make_error_code(std::errc::timed_out));
      ++expired;
    };
    const service server(
        [](net::tcp_stream& stream) {
          stream.set_keepalive(true);
          stream.expires_after(20ms);
          echo(stream);
        },
        options);
    std::vector<net::tcp_stream> clients;
    for (int i = 0; i < count; ++i) clients.push_back(net::tcp_stream::connect(server.at()));
    for (auto& client : clients) EXPECT_EQ(read_all(client), "") << "the server ends it";
    wait_until([&] { return expired == count; });
  });
}

TEST_P(AbuseIdle, ADeadlineEndsAClientThatTrickles) {
  in_runtime([] {
    const int count = fibers(50);
    std::atomic<int> late{0};
    net::serve_options options;
    options.on_error = [&](const net::endpoint&, const std::exception_ptr& failure) {
      EXPECT_EQ(code_of([&] { std::rethrow_exception(failure); }), errc::deadline_exceeded);
      ++late;
    };
    const service server(
        [](net::tcp_stream& stream) {
          std::vector<char> request(1'000'000);
          timeout(50ms, [&] { stream.read(request.data(), request.size()); });
        },
        options);
    task_group clients;
    for (int i = 0; i < count; ++i)
      clients.spawn([&] {
        auto stream = net::tcp_stream::connect(server.at());
        for (std::error_code error; !error; this_fiber::sleep_for(1ms)) stream.write("x", error);
      });
    clients.wait();
    wait_until([&] { return late == count; });
  });
}

}  // namespace
}  // namespace ulexite::test
