// Groups of readers, writers, acceptors and connectors that are cancelled at random moments.

#include "abuse.hpp"

#include <deque>

namespace ulexite::test {
namespace {

class AbuseCancel : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseCancel);

void spawn_readers_and_writers(task_group& group, stream_pair& pair) {
  group.spawn([&] { read_all(pair.left); });
  group.spawn([&] { read_all(pair.right); });
  group.spawn([&] {
    for (const std::string block(10'000, 'x');;) pair.left.write(block);
  });
  group.spawn([&, pause = detail::random_below(100)] {
    for (;; this_fiber::sleep_for(std::chrono::microseconds(pause))) pair.right.write("a little");
  });
}

// One side of a connection; the other side is cancelled too. If the other side leaves unread data, that is a reset.
template <class Talk>
void talk_until_reset(Talk talk) {
  try {
    talk();
  } catch (const operation_cancelled&) {
    throw;
  } catch (const std::system_error& error) {
    EXPECT_TRUE(error.code() == std::errc::connection_reset || error.code() == std::errc::broken_pipe) << error.what();
  }
}

void spawn_acceptor_and_connectors(task_group& group, net::tcp_listener& listener) {
  group.spawn([&] {
    for (;;) group.spawn([stream = listener.accept()]() mutable { talk_until_reset([&] { echo(stream); }); });
  });
  for (int i = 0; i < 3; ++i)
    group.spawn([&] {
      for (char c = 'x';;) {
        auto stream = net::tcp_stream::connect(listener.local_endpoint());
        talk_until_reset([&] {
          stream.write(&c, 1);
          stream.read_some(&c, 1);
        });
      }
    });
}

// In the middle of the storm. The group must have ended, and the streams must still work.
void cancel_somehow(task_group& group, detail::random& random) {
  if (random.below(3) == 0) {
    this_fiber::sleep_for(std::chrono::microseconds(random.below(1000)));
  } else {
    yield_times(random.below(60));
  }
  switch (random.below(3)) {
    case 0: group.request_stop(); return group.wait();
    case 1:
      EXPECT_THROW(timeout(std::chrono::microseconds(random.below(500)), [&] { group.wait(); }), deadline_exceeded);
      return;
    default: {
      auto waiter = spawn([&] { group.wait(); });
      yield_times(random.below(10));
      waiter.request_stop();
      EXPECT_THROW(waiter.get(), operation_cancelled);
    }
  }
}

TEST_P(AbuseCancel, StormsLeaveNothingBehind) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    detail::random random(seed);
    for (int round = 0; round < times(150) && !HasFailure(); ++round) {
      std::deque<stream_pair> pairs;
      net::tcp_listener listener(loopback());
      task_group group;
      for (std::uint32_t n = random.below(6); n > 0; --n)
        spawn_readers_and_writers(group, pairs.emplace_back(n % 2 ? stream_pair::tcp() : stream_pair::unix_sockets()));
      spawn_acceptor_and_connectors(group, listener);
      cancel_somehow(group, random);
      EXPECT_EQ(group.size(), 0u);
      EXPECT_TRUE(listener.is_open());
      for (auto& pair : pairs) EXPECT_TRUE(pair.left.is_open() && pair.right.is_open());
    }
  });
}

// A cancelled reader has taken nothing: the bytes that it did not count are still there.
TEST_P(AbuseCancel, NoByteIsLostWithAReaderThatIsCancelled) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    detail::random random(seed);
    auto pair = stream_pair::tcp();
    const unsigned count = static_cast<unsigned>(times(20'000));
    auto sender = spawn([&] {
      for (unsigned i = 0; i < count; ++i) {
        pair.right.write(&i, sizeof i);
        if (i % 16 == 0) this_fiber::yield();
      }
      pair.right.shutdown_write();
    });
    std::string received;
    for (bool end = false; !end;) {
      auto reader = spawn([&] {
        char buffer[64];
        while (const std::size_t got = pair.left.read_some(buffer, sizeof buffer)) received.append(buffer, got);
        end = true;
      });
      yield_times(random.below(6));
      reader.request_stop();
      try {
        reader.get();
      } catch (const operation_cancelled&) {
      }
    }
    sender.get();
    ASSERT_EQ(received.size(), count * sizeof count);
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(std::memcmp(received.data() + i * sizeof i, &i, sizeof i), 0) << i;
  });
}

TEST_P(AbuseCancel, ServersAreCancelledUnderLoad) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    for (int round = 0; round < times(60) && !HasFailure(); ++round) {
      detail::random random(seed + static_cast<std::uint64_t>(round));
      net::tcp_listener listener(loopback());
      task_group connections(on_error::keep_going), clients(on_error::keep_going);
      auto serving = spawn([&] { listener.serve(connections, echo, {.max_connections = 3, .on_error = ignore}); });
      for (int i = 0; i < 6; ++i)
        clients.spawn([&] {
          auto stream = net::tcp_stream::connect(listener.local_endpoint());
          stream.expires_after(bound);
          std::error_code error;
          for (char c = 'x'; !error;) {
            stream.write(&c, 1, error);
            if (!error && stream.read_some(&c, 1, error) == 0) return;
          }
        });
      yield_times(random.below(60));
      serving.request_stop();
      EXPECT_THROW(serving.get(), operation_cancelled);
      wait_until([&] { return connections.size() == 0; });  // asked to stop with it
      clients.request_stop();
      clients.wait();
    }
  });
}

}  // namespace
}  // namespace ulexite::test
