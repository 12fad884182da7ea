// Sockets in coroutines: idle connections, partial transfers, and the ways in which a wait ends otherwise.

#include "net/net_fixture.hpp"
#include "ways.hpp"

#include <ulexite/net/udp.hpp>

#include <array>
#include <mutex>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoNet : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(CoNet);

stream_pair make_pair(int i) { return i % 2 ? stream_pair::unix_sockets() : stream_pair::tcp(); }

// The code of the std::system_error that the task throws; none if it throws nothing.
template <class F>
task<std::error_code> code_of_task(F operation) {
  try {
    co_await operation();
  } catch (const std::system_error& error) {
    co_return error.code();
  }
  co_return std::error_code();
}

task<> echo(net::tcp_stream stream) {
  char data[4096];
  for (;;) {
    co_await co_readable(stream);
    const std::size_t size = stream.read_some(data, sizeof data);
    if (size == 0) co_return;
    co_await co_write(stream, data, size);
  }
}
task<> serve(net::tcp_listener& at, task_group& clients) {
  try {
    for (;;) co_spawn(clients, echo(co_await co_accept(at)));
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::bad_file_descriptor);
  }
}

TEST_P(CoNet, ServesManyClients) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    task_group clients;
    auto server = spawn([&] { return serve(listener, clients); });
    std::vector<join_handle<>> all;
    for (int i = 0; i < 30; ++i)
      all.push_back(spawn([&, i]() -> task<> {
        auto stream = net::tcp_stream::connect(listener.local_endpoint());
        for (int k = 0; k < times(50); ++k) {
          const std::string text = std::to_string(i * 1000 + k);
          if (k % 2) {
            co_await co_write(stream, text);
          } else {
            stream.write(text);
          }
          std::string back(text.size(), 0);
          if (k % 3) {
            EXPECT_EQ(co_await co_read(stream, back.data(), back.size()), back.size());
          } else {
            EXPECT_EQ(stream.read(back.data(), back.size()), back.size());
          }
          EXPECT_EQ(back, text);
        }
      }));
    for (auto& each : all) each.get();
    listener.close();
    server.get();
    clients.wait();
  });
}

// Both ends write more than the sockets hold, so each write is many.
TEST_P(CoNet, LargeTransfersInBothDirections) {
  in_runtime([] {
    for (int round = 0; round < 2; ++round) {
      auto pair = make_pair(round);
      std::string text(static_cast<std::size_t>(times(2'000'000)), 'x');
      for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
      std::vector<join_handle<>> all;
      for (net::tcp_stream* const end : {&pair.left, &pair.right}) {
        all.push_back(spawn([&, end]() -> task<> { EXPECT_EQ(co_await co_write(*end, text), text.size()); }));
        all.push_back(spawn([&, end]() -> task<> {
          std::string got(text.size(), 0);
          std::size_t done = 0;
          while (done < got.size() / 2) {
            const std::size_t more = co_await co_read_some(*end, got.data() + done, 777);
            EXPECT_GT(more, 0u);
            done += more;
          }
          done += co_await co_read(*end, got.data() + done, got.size() - done);
          EXPECT_EQ(done, got.size());
          EXPECT_EQ(got, text);
        }));
      }
      for (auto& each : all) each.get();
    }
  });
}

TEST_P(CoNet, AReadEndsAtTheEndOfTheStream) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto reads = spawn([&]() -> task<std::size_t> {
      char data[10];
      const std::size_t got = co_await co_read(pair.left, data, sizeof data);
      co_await co_readable(pair.left);  // the end is readable
      EXPECT_EQ(co_await co_read_some(pair.left, data, sizeof data), 0u);
      EXPECT_EQ(co_await co_read_some(pair.left, data, 0), 0u);
      co_return got;
    });
    pair.right.write("abc");
    pair.right.close();
    EXPECT_EQ(reads.get(), 3u);
  });
}

TEST_P(CoNet, ReadableTakesNothing) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto reads = spawn([&]() -> task<> {
      for (int i = 0; i < times(500); ++i) {
        co_await co_readable(pair.left);
        co_await co_readable(pair.left);
        char got = 0;
        EXPECT_EQ(pair.left.read_some(&got, 1), 1u);
        EXPECT_EQ(got, static_cast<char>('a' + i % 26));
        co_await co_write(pair.left, &got, 1);
      }
    });
    for (int i = 0; i < times(500); ++i) {
      const char sent = static_cast<char>('a' + i % 26);
      pair.right.write(&sent, 1);
      char got = 0;
      EXPECT_EQ(pair.right.read(&got, 1), 1u);
      EXPECT_EQ(got, sent);
    }
    reads.get();
  });
}

TEST_P(CoNet, ACloseWakesEachWait) {
  in_runtime([] {
    for (int i = 0; i < 60; ++i) {
      auto pair = make_pair(i);
      char data[10];
      const std::string block(100'000, 'x');
      auto waits = spawn([&, i]() -> task<std::error_code> {
        switch (i / 2 % 3) {
          case 0: return code_of_task([&] { return co_readable(pair.left); });
          case 1: return code_of_task([&] { return co_read_some(pair.left, data, sizeof data); });
          default:
            return code_of_task([&]() -> task<> {
              for (;;) co_await co_write(pair.left, block);
            });
        }
      });
      if (i % 5) let_others_run();
      pair.left.close();
      EXPECT_EQ(waits.get(), std::errc::bad_file_descriptor);
      EXPECT_EQ(spawn([&] { return code_of_task([&] { return co_readable(pair.left); }); }).get(),
                std::errc::bad_file_descriptor);
    }
    net::tcp_listener listener(loopback());
    auto accepts = spawn([&] { return code_of_task([&] { return co_accept(listener); }); });
    let_others_run();
    listener.close();
    EXPECT_EQ(accepts.get(), std::errc::bad_file_descriptor);
    net::udp_socket datagrams(loopback());
    auto waits = spawn([&] { return code_of_task([&] { return co_readable(datagrams); }); });
    let_others_run();
    datagrams.close();
    EXPECT_EQ(waits.get(), std::errc::bad_file_descriptor);
  });
}

TEST_P(CoNet, ASocketThatWasNeverOpenIsRefused) {
  in_runtime([] {
    net::tcp_stream none;
    char data[1];
    EXPECT_EQ(spawn([&] { return code_of_task([&] { return co_readable(none); }); }).get(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(spawn([&] { return code_of_task([&] { return co_read(none, data, 1); }); }).get(),
              std::errc::bad_file_descriptor);
  });
}

TEST_P(CoNet, AnExpiryEndsEachWait) {
  in_runtime([] {
    for (int i = 0; i < 12; ++i) {
      auto pair = make_pair(i);
      pair.left.expires_after(1ms);
      const auto begun = ulexite::steady_clock::now();
      char data[10];
      const std::string block(100'000, 'x');
      const auto code = spawn([&, i]() -> task<std::error_code> {
                          switch (i % 3) {
                            case 0: return code_of_task([&] { return co_readable(pair.left); });
                            case 1: return code_of_task([&] { return co_read(pair.left, data, sizeof data); });
                            default:
                              return code_of_task([&]() -> task<> {
                                for (;;) co_await co_write(pair.left, block);
                              });
                          }
                        }).get();
      EXPECT_EQ(code, std::errc::timed_out);
      EXPECT_GE(ulexite::steady_clock::now() - begun, 1ms);
      EXPECT_EQ(spawn([&] { return code_of_task([&] { return co_readable(pair.left); }); }).get(),
                std::errc::timed_out);
      pair.left.expires_after(bound);
      if (i % 3 < 2) {
        pair.right.write("y");
        EXPECT_EQ(spawn([&]() -> task<std::size_t> { co_return co_await co_read_some(pair.left, data, 1); }).get(), 1u);
      }
    }
  });
}

TEST_P(CoNet, AStopOrADeadlineLeavesTheSocketUsable) {
  in_runtime([] {
    for (int i = 0; i < 60; ++i) {
      auto pair = make_pair(i);
      auto waits = spawn([&]() -> task<> { co_await co_readable(pair.left); });
      if (i % 3) let_others_run();
      waits.request_stop();
      EXPECT_THROW(waits.get(), operation_cancelled);
      auto late = spawn([&]() -> task<> {
        const deadline_scope limit(std::chrono::microseconds(i * 5));
        co_await co_readable(pair.left);
      });
      EXPECT_THROW(late.get(), deadline_exceeded);
      pair.right.write("z");
      auto reads = spawn([&]() -> task<> {
        char got = 0;
        EXPECT_EQ(co_await co_read(pair.left, &got, 1), 1u);
        EXPECT_EQ(got, 'z');
      });
      reads.get();
    }
  });
}

// A fiber that waits with its stack, and a coroutine, in turns on one socket.
TEST_P(CoNet, CoroutinesAndFibersShareASocketInTurns) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const int each = times(200);
    mutex turn;
    auto writes = spawn([&]() -> task<> {
      for (int i = 0; i < 4 * each; ++i) {
        co_await co_write(pair.right, "x");
        if (i % 10 == 0) co_await co_sleep_for(1us);
      }
    });
    std::atomic<int> got{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i) {
      const auto take = [&](std::size_t size) { got += static_cast<int>(size); };
      if (i % 2) {
        all.push_back(spawn([&, take] {
          char c;
          for (int k = 0; k < each; ++k) {
            const std::lock_guard mine(turn);
            take(pair.left.read(&c, 1));
          }
        }));
      } else {
        all.push_back(spawn([&, take]() -> task<> {
          char c;
          for (int k = 0; k < each; ++k) {
            const auto mine = co_await co_lock(turn);
            take(co_await co_read(pair.left, &c, 1));
          }
        }));
      }
    }
    for (auto& one : all) one.get();
    writes.get();
    EXPECT_EQ(got, 4 * each);
  });
}

TEST_P(CoNet, OneReadsAtATime) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto first = spawn([&]() -> task<> { co_await co_readable(pair.left); });
    wait_until_others_wait();
    char c;
    EXPECT_THROW(pair.left.read_some(&c, 1), usage_error);
    EXPECT_THROW(spawn([&]() -> task<> { co_await co_read(pair.left, &c, 1); }).get(), usage_error);
    EXPECT_EQ(spawn([&]() -> task<std::size_t> { co_return co_await co_write(pair.left, "x"); }).get(), 1u);
    pair.right.write("y");
    first.get();
    EXPECT_EQ(pair.left.read_some(&c, 1), 1u);
  });
}

TEST_P(CoNet, StopsRaceWithBytes) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    int got = 0;
    const int rounds = times(300);
    for (int i = 0; i < rounds; ++i) {
      auto reads = spawn([&]() -> task<> {
        char c;
        got += static_cast<int>(co_await co_read_some(pair.left, &c, 1));
      });
      auto writes = spawn([&] { pair.right.write("x"); });
      for (int k = 0; k < i % 4; ++k) this_fiber::yield();
      reads.request_stop();
      try {
        reads.get();
      } catch (const operation_cancelled&) {
      }
      writes.get();
    }
    pair.right.close();
    char rest[1000];
    while (const std::size_t more = pair.left.read_some(rest, sizeof rest)) got += static_cast<int>(more);
    EXPECT_EQ(got, rounds);
  });
}

TEST_P(CoNet, DatagramsComeWhole) {
  in_runtime([] {
    net::udp_socket here(loopback()), there(loopback());
    auto receives = spawn([&]() -> task<> {
      for (int i = 0; i < 100; ++i) {
        co_await co_readable(here);
        char data[100];
        net::endpoint from;
        const std::size_t size = here.receive_from(data, sizeof data, from);
        EXPECT_EQ(std::string(data, size), std::to_string(i));
        here.send_to(data, size, from);
      }
    });
    for (int i = 0; i < 100; ++i) {
      const std::string text = std::to_string(i);
      there.send_to(text.data(), text.size(), here.local_endpoint());
      char back[100];
      EXPECT_EQ(std::string(back, there.receive(back, sizeof back)), text);
    }
    receives.get();
  });
}

TEST_P(CoNet, IdleConnectionsEndWithTheirRuntime) {
  in_runtime([] {
    std::vector<stream_pair> pairs;
    std::atomic<int> alive{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 50; ++i) pairs.push_back(make_pair(i));
    for (auto& pair : pairs)
      all.push_back(spawn([&]() -> task<> {
        const lives here(alive);
        co_await co_readable(pair.left);
      }));
    wait_until([&] { return alive == 50; });
    for (auto& each : all) each.request_stop();
    for (auto& each : all) EXPECT_THROW(each.get(), operation_cancelled);
    EXPECT_EQ(alive, 0);
  });
}

}  // namespace
