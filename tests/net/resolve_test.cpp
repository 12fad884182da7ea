// Names, with a resolver that hangs on demand: getaddrinfo of this program comes before the system's.

#include "net_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

// The dead server: asked about *.dead, it does not answer until it is revived.
struct dead_server {
  std::mutex mutex;
  std::condition_variable revived;
  bool alive = false;
  std::atomic<int> asked{0}, asked_for_x{0};

  void ask(std::string_view name) {
    ++asked;
    if (name == "x.dead") ++asked_for_x;
    std::unique_lock lock(mutex);
    revived.wait(lock, [this] { return alive; });
  }
  void kill() {
    const std::lock_guard lock(mutex);
    alive = false;
    asked = asked_for_x = 0;
  }
  void revive() {
    const std::lock_guard lock(mutex);
    alive = true;
    revived.notify_all();
  }
} server;

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool by_name = !(hints->ai_flags & AI_NUMERICHOST);
  const std::string_view name(node);
  if (by_name && name.ends_with(".dead")) {
    server.ask(name);
    return EAI_AGAIN;
  }
  if (by_name && name.ends_with(".alive")) return real("127.0.0.1", service, hints, found);
  return real(node, service, hints, found);
}

namespace ulexite::test {
namespace {

class Resolve : public NetTest {
 protected:
  Resolve() { server.kill(); }
  ~Resolve() override { server.revive(); }
};
ULEXITE_ON_ALL_WORKER_COUNTS(Resolve);

TEST_P(Resolve, NumbersAreTranslated) {
  in_runtime([] {
    EXPECT_EQ(net::resolve("127.0.0.1", "80").at(0).str(), "127.0.0.1:80");
    EXPECT_EQ(net::resolve("::1", "443").at(0).str(), "[::1]:443");
  });
}

TEST_P(Resolve, NamesOfHostsAndServicesAreFound) {
  in_runtime([] {
    const auto found = net::resolve("localhost", "8080");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().port(), 8080);
    EXPECT_EQ(net::resolve("some.alive", "81").at(0).str(), "127.0.0.1:81");
  });
}

TEST_P(Resolve, WhatIsNotFoundIsNamed) {
  in_runtime([] {
    std::error_code error;
    EXPECT_TRUE(net::resolve("127.0.0.1", "no-such-service", error).empty());
    EXPECT_EQ(error.category(), net::resolve_category());
    for (const char* number : {"65536", "70000", "99999999999999999999"}) {
      EXPECT_TRUE(net::resolve("127.0.0.1", number, error).empty()) << number;
      EXPECT_EQ(error, std::error_code(EAI_SERVICE, net::resolve_category())) << number;
    }
    // Texts that strtoul accepts as a number. getaddrinfo accepts them too, and would cut them to 16 bits.
    for (const char* number : {"+70000", " 70000", "-1", "+80", "\t80", "+4294967376"}) {
      EXPECT_TRUE(net::resolve("127.0.0.1", number, error).empty()) << number;
      EXPECT_EQ(error, std::error_code(EAI_SERVICE, net::resolve_category())) << number;
    }
    for (const char* service : {"", "*"}) {
      EXPECT_TRUE(net::resolve("localhost", service, error).empty()) << service;
      EXPECT_EQ(error, std::error_code(EAI_SERVICE, net::resolve_category())) << service;
    }
    EXPECT_TRUE(net::resolve("*", "80", error).empty());
    EXPECT_EQ(error, std::error_code(EAI_NONAME, net::resolve_category()));
    EXPECT_EQ(net::resolve("127.0.0.1", "0000000080").at(0).port(), 80);
    try {
      (void)net::resolve("127.0.0.1", "70000");
      ADD_FAILURE();
    } catch (const std::system_error& failure) {
      EXPECT_NE(std::string(failure.what()).find("127.0.0.1:70000, whose port is no number from 0 to 65535"),
                std::string::npos)
          << failure.what();
    }
    try {
      (void)net::resolve("127.0.0.1", "no-such-service");
      ADD_FAILURE();
    } catch (const std::system_error& failure) {
      EXPECT_NE(std::string(failure.what()).find("127.0.0.1:no-such-service"), std::string::npos) << failure.what();
    }
  });
}

TEST_P(Resolve, ANulIsRefused) {
  in_runtime([] {
    using namespace std::string_view_literals;
    std::error_code error;
    EXPECT_TRUE(net::resolve("127.0.0.1\0.elsewhere"sv, "80", error).empty());
    EXPECT_EQ(error, std::errc::invalid_argument);
    EXPECT_TRUE(net::resolve("some.alive\0.elsewhere"sv, "80", error).empty());
    EXPECT_EQ(error, std::errc::invalid_argument);
    EXPECT_TRUE(net::resolve("127.0.0.1", "80\0x"sv, error).empty());
    EXPECT_EQ(error, std::errc::invalid_argument);
    try {
      (void)net::tcp_stream::connect(net::address("127.0.0.1\0x"sv, 80));
      ADD_FAILURE();
    } catch (const std::invalid_argument& failure) {
      EXPECT_NE(std::string(failure.what()).find("127.0.0.1\\0x"), std::string::npos) << failure.what();
    }
  });
}

// All workers would hang in the resolver, were it called on them.
TEST_P(Resolve, WorkersGoOnWhileTheServerIsSilent) {
  in_runtime([] {
    task_group all;
    for (int i = 0; i < 20; ++i)
      all.spawn([] {
        std::error_code error;
        (void)net::resolve("x.dead", "80", error);
        EXPECT_EQ(error, std::error_code(EAI_AGAIN, net::resolve_category()));
      });
    while (server.asked < 20) this_fiber::yield();
    auto other = spawn([] { server.revive(); });
    all.wait();
    other.join();
  });
}

TEST_P(Resolve, ATimeOutADeadlineAndAStopEndTheWait) {
  in_runtime([] {
    std::error_code error;
    (void)net::resolve("y.dead", "80", {.timeout = 1ms}, error);
    EXPECT_EQ(error, std::make_error_code(std::errc::timed_out));
    EXPECT_THROW(timeout(1ms, [] { (void)net::resolve("y.dead", "80"); }), deadline_exceeded);
    auto asking = spawn([] { (void)net::resolve("x.dead", "80"); });
    while (server.asked_for_x < 1) this_fiber::yield();
    asking.request_stop();
    EXPECT_THROW(asking.get(), operation_cancelled);
    EXPECT_THROW((void)net::tcp_stream::connect(net::address("y.dead", 80), {.timeout = 1ms}), std::system_error);
  });
}

// The threads in the resolver are still there.
TEST_P(Resolve, ARuntimeEndsWhileTheServerIsSilent) {
  {
    runtime rt({.threads = GetParam()});
    for (int i = 0; i < 5; ++i) rt.spawn([] { (void)net::resolve("x.dead", "80"); }).detach();
    rt.run([] {
      while (server.asked < 5) this_fiber::yield();
    });
  }
  runtime another({.threads = GetParam()});
  EXPECT_EQ(another.run([] { return net::resolve("other.alive", "1").size(); }), 1u);
}

TEST_P(Resolve, QuestionsThatWaitForAThreadAreWithdrawn) {
  runtime rt({.threads = GetParam(), .blocking_threads = 1});
  rt.run([&] {
    auto asking = spawn([] { (void)net::resolve("x.dead", "80"); });
    while (server.asked < 1) this_fiber::yield();
    asking.request_stop();
    EXPECT_THROW(asking.get(), operation_cancelled);
    for (int i = 0; i < 10; ++i)
      EXPECT_THROW(timeout(1ms, [] { (void)net::resolve("y.dead", "80"); }), deadline_exceeded);
    EXPECT_EQ(rt.metrics().blocking_queued, 0u);
    EXPECT_EQ(server.asked, 1);
  });
}

// The thread that is still in the resolver finds nothing to do when it returns.
TEST_P(Resolve, WhatWaitedBehindAGivenUpQuestionIsDroppedByAStop) {
  static std::atomic<bool> made;
  made = false;
  runtime rt({.threads = GetParam(), .blocking_threads = 1});
  auto asking = rt.spawn([] { (void)net::resolve("x.dead", "80"); });
  while (server.asked < 1) std::this_thread::yield();
  asking.request_stop();
  EXPECT_THROW(asking.get(), operation_cancelled);
  auto behind = rt.spawn([] { blocking([] { made = true; }); });
  while (rt.metrics().blocking_queued < 1) std::this_thread::yield();
  EXPECT_EQ(rt.shutdown(shutdown_mode::abandon), 1u);
  server.revive();
  EXPECT_THROW(behind.get(), operation_cancelled);
  EXPECT_FALSE(made);
}

TEST(ResolveOutside, APlainThreadAsksItself) { EXPECT_FALSE(net::resolve("localhost", "80").empty()); }

}  // namespace
}  // namespace ulexite::test
