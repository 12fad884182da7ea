#pragma once

#include "support/clean_runtime.hpp"
#include "support/redis_server.hpp"
#include "support/waiting.hpp"
#include "support/watchdog.hpp"

#include <ulexite/interop/redis.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ulexite::test {

using namespace std::chrono_literals;

// One redis-server for all tests of a suite. Each test begins with it empty, and leaves no descriptor and no fiber.
class RedisTest : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() {
    if (redis_server::installed()) server_ = std::make_unique<redis_server>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "redis-server is not installed (Debian: redis-server)";
  }

  // Runs `body` as the main fiber of a new runtime, with an empty server.
  template <class Body>
  void in_runtime(Body&& body) {
    run_and_leave_nothing({.threads = GetParam()}, [&] {
      redis::connection(at()).command("FLUSHALL");
      body();
    });
  }
  static redis_server& server() { return *server_; }
  static net::address at() { return net::address::parse(server_->where()); }

 private:
  inline static std::unique_ptr<redis_server> server_;
  const watchdog watchdog_{"a test of redis", nullptr, 120};
};

#define ULEXITE_REDIS_TEST(Suite) \
  INSTANTIATE_TEST_SUITE_P(Workers, Suite, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName())

// The exception of type Error that `body` throws.
template <class Error, class Body>
Error thrown_by(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error("nothing was thrown");
}

inline long long clients_of(redis::connection& db) {
  const redis::reply list = db.command("CLIENT", "LIST");
  const std::string_view text = list.text();
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace ulexite::test
