// Clients that are rude: they reset connections at every time, write byte by byte, or never read.

#include "abuse.hpp"

#include <netinet/in.h>

#include <fstream>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseReset : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseReset);

// The errors that a server may see when a client resets.
void expect_the_clients_affair(const std::exception_ptr& failure) {
  const auto code = code_of([&] { std::rethrow_exception(failure); });
  EXPECT_TRUE(code == std::errc::connection_reset || code == std::errc::broken_pipe) << code.message();
}

net::serve_options of_rude_clients() {
  net::serve_options options;
  options.on_error = [](const net::endpoint&, const std::exception_ptr& f) { expect_the_clients_affair(f); };
  return options;
}

void expect_echo(net::tcp_stream& stream, const std::string& text) {
  std::string answer(text.size(), '\0');
  stream.write(text);
  ASSERT_EQ(stream.read(answer.data(), answer.size()), text.size());
  ASSERT_EQ(answer, text);
}

// One of a storm: connects, and resets after having said nothing, a little, more than is read, or all.
void reset_once(const net::endpoint& server, detail::random& random) {
  auto stream = net::tcp_stream::connect(server);
  switch (random.below(4)) {
    case 0: break;
    case 1: stream.write("a few words"); break;
    case 2: stream.write(std::string(random.below(100'000), 'x')); break;
    default: expect_echo(stream, "a whole talk");
  }
  yield_times(random.below(5));
  stream.abort();
}

TEST_P(AbuseReset, AStormOfResetsHarmsNobodyElse) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    const service server(echo, of_rude_clients());
    auto polite = net::tcp_stream::connect(server.at());
    task_group storm;
    for (std::uint64_t i = 0; i < 8; ++i)
      storm.spawn([&, random = detail::random(seed + i)]() mutable {
        for (int n = times(250); n > 0; --n) reset_once(server.at(), random);
      });
    while (storm.size() > 0) expect_echo(polite, "is anybody there?");
    storm.wait();
    expect_echo(polite, "and still?");
  });
}

// Linux hands over connections that were reset in the backlog; their earlier data may be lost.
TEST_P(AbuseReset, ConnectionsThatAreResetInTheBacklogAreAcceptedAndEnd) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    for (int i = 0; i < times(1000); ++i) {
      auto stream = net::tcp_stream::connect(listener.local_endpoint());
      if (i % 2) stream.write("too late");
      stream.abort();
    }
    auto survivor = net::tcp_stream::connect(listener.local_endpoint());
    std::atomic<int> handled{0};
    net::serve_options options = of_rude_clients();
    options.max_connections = 10;
    task_group group;
    auto serving = spawn([&] {
      listener.serve(
          group,
          [&](net::tcp_stream& stream) {
            ++handled;
            echo(stream);
          },
          options);
    });
    expect_echo(survivor, "the last in the queue");
    survivor.close();
    listener.close();
    serving.join();
    EXPECT_GE(handled, 1);
  });
}

TEST_P(AbuseReset, AResetRacesWithTheCloseOfTheListener) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    for (int i = 0; i < times(100); ++i) {
      detail::random random(seed + static_cast<std::uint64_t>(i));
      const refusing_port port;  // stays taken: who comes after the close must not meet a stranger
      task_group clients;        // they outlive the server
      const service server(echo, of_rude_clients(), port.at(), {.reuse_port = true});
      for (int n = 0; n < 5; ++n)
        clients.spawn([at = port.at(), mine = detail::random(random.next())]() mutable {
          std::error_code error;
          auto stream = net::tcp_stream::connect(at, {}, error);
          stream.write("x", error);
          yield_times(mine.below(20));
          if (stream.is_open()) stream.abort();
        });
      yield_times(random.below(30));
    }
  });
}

// ---- byte by byte ----

TEST_P(AbuseReset, SingleBytesGoBothWays) {
  in_runtime([] {
    const service server([](net::tcp_stream& stream) {
      char c;
      while (stream.read_some(&c, 1) == 1) stream.write(&c, 1);
    });
    task_group clients;
    for (int id = 0; id < 10; ++id)
      clients.spawn([&, id, count = times(1000)] {
        auto stream = net::tcp_stream::connect(server.at());
        const auto byte = [id](int i) { return static_cast<char>(i * 7 + id); };
        auto writer = spawn([&] {
          for (int i = 0; i < count; ++i) {
            const char c = byte(i);
            stream.write(&c, 1);
          }
          stream.shutdown_write();
        });
        for (int i = 0; i < count; ++i) {
          char c = 0;
          ASSERT_EQ(stream.read_some(&c, 1), 1u);
          ASSERT_EQ(c, byte(i)) << "byte " << i;
        }
        EXPECT_EQ(read_all(stream), "");
        writer.get();
      });
    clients.wait();
  });
}

// ---- clients that never read ----

std::size_t resident_pages() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

// Connected, with a small receive buffer that does not grow.
net::tcp_stream narrow_client(const net::endpoint& server) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int size = 4096;
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
  EXPECT_EQ(::connect(fd, server.data(), server.size()), 0);  // without a wait: the backlog takes it
  return net::tcp_stream::adopt(fd);
}

// `write` must end by an exception with `code`, for each of many clients; and nothing accumulates during this time.
template <class Write>
void expect_that_writing_ends(Write write, std::error_code code) {
  constexpr std::size_t most_taken = 64 << 20;  // by the kernel, of one connection; far more than its buffers
  const int count = fibers(times(200));
  std::atomic<int> ended{0};
  net::serve_options options;
  options.on_error = [&](const net::endpoint&, const std::exception_ptr& failure) {
    EXPECT_EQ(code_of([&] { std::rethrow_exception(failure); }), code);
    ++ended;
  };
  const std::size_t pages_before = resident_pages();
  {
    const service server(
        [&](net::tcp_stream& stream) {
          static const std::string block(16'384, 'x');
          std::size_t taken = 0;
          write(stream, [&] {
            for (; taken < most_taken; taken += block.size()) stream.write(block);
          });
          ADD_FAILURE() << "the kernel took " << taken << " bytes that nobody reads";
        },
        options);
    std::vector<net::tcp_stream> clients;
    for (int i = 0; i < count; ++i) clients.push_back(narrow_client(server.at()));
    wait_until([&] { return ended == count; });
  }
  const std::size_t pages_after = resident_pages();
  const std::size_t grown = pages_after - std::min(pages_before, pages_after);
  EXPECT_LT(grown * 4096 / static_cast<std::size_t>(count), std::size_t{1} << 20) << "bytes per connection";
}

TEST_P(AbuseReset, AnExpiryEndsWritesThatNobodyReads) {
  in_runtime([] {
    expect_that_writing_ends(
        [](net::tcp_stream& stream, auto write) {
          stream.expires_after(30ms);
          write();
        },
        std::make_error_code(std::errc::timed_out));
  });
}

TEST_P(AbuseReset, ADeadlineEndsWritesThatNobodyReads) {
  in_runtime([] {
    expect_that_writing_ends([](net::tcp_stream&, auto write) { timeout(30ms, write); }, errc::deadline_exceeded);
  });
}

TEST_P(AbuseReset, TheDrainTimeEndsWritesThatNobodyReads) {
  in_runtime([] {
    const int count = fibers(50);
    net::serve_options options;
    options.drain_time = 20ms;
    std::vector<net::tcp_stream> clients;
    std::atomic<int> begun{0}, cancelled{0};
    {
      const service server(
          [&](net::tcp_stream& stream) {
            ++begun;
            const std::string block(16'384, 'x');
            try {
              for (;;) stream.write(block);
            } catch (const operation_cancelled&) {
              ++cancelled;
              throw;
            }
          },
          options);
      for (int i = 0; i < count; ++i) clients.push_back(narrow_client(server.at()));
      wait_until([&] { return begun == count; });
    }
    EXPECT_EQ(cancelled, count);
  });
}

}  // namespace
}  // namespace ulexite::test
