// A call reads a stream's descriptor and then uses it. It would use a foreign file if the stream was closed in between,
// and the number was used again. This test makes it happen: it replaces functions of the C library, so that the close
// comes first.

#include "abuse.hpp"

#include <netinet/tcp.h>
#include <sys/syscall.h>

#include <functional>
#include <thread>

namespace {

// Runs once, just before the system call.
std::function<void()>* just_before = nullptr;

void meddle() {
  if (auto* const meddler = std::exchange(just_before, nullptr)) (*meddler)();
}

}  // namespace

extern "C" int shutdown(int fd, int how) noexcept {
  meddle();
  return static_cast<int>(::syscall(SYS_shutdown, fd, how));
}

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  meddle();
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, name, value, size));
}

extern "C" int getpeername(int fd, sockaddr* name, socklen_t* size) noexcept {
  meddle();
  return static_cast<int>(::syscall(SYS_getpeername, fd, name, size));
}

namespace ulexite::test {
namespace {

// Closes `victim` from another thread in the midst of `call`, which must have no effect on who gets the number next.
// With the descriptor held against the close, the close waits until the call is over.
template <class Call, class Check>
void expect_the_stranger_unharmed(Call call, Check check) {
  auto victim = stream_pair::tcp();
  auto second = stream_pair::tcp();
  const int number = victim.left.native_handle();
  std::thread closer;
  std::atomic<bool> closed{false};
  std::function<void()> meddler = [&] {
    closer = std::thread([&] {
      victim.left.close();
      ASSERT_EQ(::dup2(second.left.native_handle(), number), number);
      closed = true;
    });
    hog_until([&] { return closed.load(); }, 100ms);  // or it has to wait, which is right
  };
  just_before = &meddler;
  std::error_code error;
  call(victim.left, error);
  ASSERT_EQ(just_before, nullptr) << "the call came about";
  closer.join();
  check(second);
  ::close(number);
}

TEST(AbuseNumber, ShutdownOfTheWritingSideMeetsNoStranger) {
  expect_the_stranger_unharmed([](net::tcp_stream& stream, std::error_code& error) { stream.shutdown_write(error); },
                               [](stream_pair& stranger) {
                                 std::error_code error;
                                 stranger.left.write("still open", error);
                                 EXPECT_FALSE(error) << error.message();
                               });
}

TEST(AbuseNumber, ShutdownOfTheReadingSideMeetsNoStranger) {
  expect_the_stranger_unharmed([](net::tcp_stream& stream, std::error_code&) { stream.shutdown_read(); },
                               [](stream_pair& stranger) {
                                 stranger.right.write("x");
                                 char c = 0;
                                 EXPECT_EQ(stranger.left.read_some(&c, 1), 1u);
                               });
}

TEST(AbuseNumber, OptionsAreSetOnNoStranger) {
  expect_the_stranger_unharmed(
      [](net::tcp_stream& stream, std::error_code& error) { error = code_of([&] { stream.set_keepalive(true); }); },
      [](stream_pair& stranger) {
        int on = 0;
        socklen_t size = sizeof on;
        ASSERT_EQ(::getsockopt(stranger.left.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
        EXPECT_EQ(on, 0);
      });
}

TEST(AbuseNumber, NamesAreNoStrangers) {
  net::endpoint said;
  expect_the_stranger_unharmed(
      [&](net::tcp_stream& stream, std::error_code& error) {
        error = code_of([&] { said = stream.remote_endpoint(); });
      },
      [&](stream_pair& stranger) { EXPECT_NE(said, stranger.left.remote_endpoint()); });
}

}  // namespace
}  // namespace ulexite::test
