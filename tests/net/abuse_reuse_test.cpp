// Descriptors are closed and opened so fast that their numbers are reused while edges of the earlier use are under way.
// Every byte carries its connection's name, so a byte that goes astray is seen.

#include "abuse.hpp"

#include <sys/syscall.h>

#include <array>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseReuse : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseReuse);

// A stretch of what a connection of that name says: its name, over and over.
class speech {
 public:
  explicit speech(std::uint64_t name) : name_(name) {}

  [[nodiscard]] std::string next(std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = byte_at(position_++);
    return text;
  }
  [[nodiscard]] bool hears(const char* text, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      if (text[i] != byte_at(position_++)) return false;
    return true;
  }

 private:
  [[nodiscard]] char byte_at(std::uint64_t position) const {
    return static_cast<char>(name_ >> (position % sizeof name_ * 8));
  }
  std::uint64_t name_, position_ = 0;
};

// Reads until the end or an error; what comes must be of one name.
void expect_only(std::uint64_t name, net::tcp_stream& stream) {
  speech expected(name);
  std::error_code error;
  std::array<char, 500> buffer;
  while (const std::size_t got = stream.read_some(buffer.data(), buffer.size(), error))
    ASSERT_TRUE(expected.hears(buffer.data(), got)) << "of another connection, or out of order";
}

void say(std::uint64_t name, net::tcp_stream& stream, detail::random random) {
  speech words(name);
  std::error_code error;
  for (std::uint32_t n = random.below(6); n > 0 && !error; --n) {
    stream.write(words.next(1 + random.below(300)), error);
    yield_times(random.below(3));
  }
}

void close_somehow(net::tcp_stream& stream, detail::random& random) {
  switch (random.below(3)) {
    case 0: return stream.close();
    case 1: {
      if (!stream.is_open()) return;
      std::error_code gone;
      stream.shutdown_write(gone);
      return stream.close();
    }
    default:
      const linger at_once{1, 0};
      ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      stream.close();
  }
}

// One pair. Both sides talk until a third fiber closes one of them, in the middle or at the end.
void live_as_pair(std::uint64_t name, detail::random& random) {
  auto pair = random.below(3) == 0 ? stream_pair::tcp() : stream_pair::unix_sockets();
  {
    task_group users;
    users.spawn([&] { expect_only(name, pair.left); });
    users.spawn([&] { expect_only(~name, pair.right); });
    users.spawn([&, mine = detail::random(random.next())] { say(~name, pair.left, mine); });
    users.spawn([&, mine = detail::random(random.next())] { say(name, pair.right, mine); });
    yield_times(random.below(10));
    close_somehow(random.below(2) == 0 ? pair.left : pair.right, random);
    yield_times(random.below(3));
    pair.left.close();
    pair.right.close();
    users.wait();
  }
}

TEST_P(AbuseReuse, EveryByteStaysInItsPair) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    task_group group;
    for (std::uint64_t fiber = 1; fiber <= 8; ++fiber)
      group.spawn([&, fiber, random = detail::random(seed + fiber)]() mutable {
        for (int round = 0; round < times(400) && !HasFailure(); ++round)
          live_as_pair(fiber * 0x0101010101010101u + static_cast<std::uint64_t>(round) * 0x10001, random);
      });
    group.wait();
  });
}

// A server that says its client's first word back for ever is what a stranger's bytes would show at.
void repeat_the_name(net::tcp_stream& stream) {
  std::uint64_t name = 0;
  if (stream.read(&name, sizeof name) != sizeof name) return;
  auto answers = spawn([&] { say(~name, stream, detail::random(name)); });
  expect_only(name, stream);
  answers.join();
}

void live_as_client(const net::endpoint& server, std::uint64_t name, detail::random& random) {
  auto stream = net::tcp_stream::connect(server);
  stream.expires_after(bound);
  stream.write(&name, sizeof name);
  auto reader = spawn([&] { expect_only(~name, stream); });
  say(name, stream, detail::random(random.next()));
  if (random.below(2) == 0) yield_times(random.below(6));
  close_somehow(stream, random);
  reader.join();
}

TEST_P(AbuseReuse, EveryByteReachesItsConnectionOfAServer) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    const service server(repeat_the_name, {.on_error = ignore});
    task_group clients;
    for (std::uint64_t fiber = 1; fiber <= 8; ++fiber)
      clients.spawn([&, fiber, random = detail::random(seed + fiber)]() mutable {
        for (int round = 0; round < times(400) && !HasFailure(); ++round)
          live_as_client(server.at(), fiber << 56 | static_cast<std::uint64_t>(round) << 20 | 0xabcde, random);
      });
    clients.wait();
  });
}

// Waits for descriptors of another owner, which closes them and opens others as soon as a wait is over.
TEST_P(AbuseReuse, WaitsForForeignDescriptorsSurviveReuse) {
  const std::uint64_t seed = test_seed();
  in_runtime([&] {
    task_group group;
    for (std::uint64_t fiber = 0; fiber < 8; ++fiber)
      group.spawn([&, random = detail::random(seed + fiber)]() mutable {
        for (int round = 0; round < times(500); ++round) {
          int ends[2];
          ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
          const bool closes = random.below(2) == 0;
          auto writer = spawn([&, pause = random.below(6)] {
            yield_times(pause);
            if (closes) {
              ::close(ends[1]);
            } else {
              EXPECT_EQ(::write(ends[1], "x", 1), 1);
            }
          });
          net::wait_fd(ends[0], net::interest::read);
          char c;
          EXPECT_EQ(::read(ends[0], &c, 1), closes ? 0 : 1) << "it was not ready";
          writer.join();
          if (!closes) ::close(ends[1]);
          ::close(ends[0]);
        }
      });
    group.wait();
  });
}

}  // namespace
}  // namespace ulexite::test
