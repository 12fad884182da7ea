#pragma once

// Shared by the tests of interop/postgres.hpp, which have one server.

#include <ulexite/interop/postgres.hpp>

#include "support/clean_runtime.hpp"
#include "support/postgres_server.hpp"
#include "support/watchdog.hpp"

#include <ulexite/runtime/spawn.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace ulexite::test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// The one bound of every wait: much longer than anything here takes.
inline constexpr auto bound = 120s;

class Postgres : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!shared_server()) GTEST_SKIP() << "postgresql is not installed";
  }

  static postgres_server& server() { return *shared_server(); }
  static std::string where() { return server().where(); }

  // Runs `body` as the main fiber of a new runtime, which leaves nothing behind.
  template <class Body>
  static void in_runtime(Body&& body) {
    run_and_leave_nothing({.threads = GetParam()}, [&] { timeout(bound, std::forward<Body>(body)); });
  }

  static void make_table(postgres::pool& db, const std::string& name) {
    db.exec("DROP TABLE IF EXISTS " + name + "; CREATE TABLE " + name + "(a int, b text)");
  }

  // How many statements that sleep long are in the server.
  static int statements(postgres::connection& watching) {
    return watching
        .exec("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(30)%'")
        .value<int>();
  }
  static void await_statements(int count) {
    postgres::connection watching(where());
    wait_until([&] { return statements(watching) == count; });
  }

  // A fiber that is stopped in `statement`, which sleeps long, leaves it. The connection is good again then, if it is
  // the only one.
  template <class Statement>
  static void expect_given_up(postgres::pool& db, Statement statement) {
    auto asking = spawn(statement);
    await_statements(1);
    asking.request_stop();
    EXPECT_THROW(asking.get(), operation_cancelled);
    EXPECT_EQ(db.exec("SELECT 1").value<int>(), 1);
    await_statements(0);
  }
  static void expect_given_up(postgres::pool& db) {
    expect_given_up(db, [&] { db.exec("SELECT pg_sleep(30)"); });
  }

  // The text of the Error that `body` throws.
  template <class Error, class Body>
  static std::string error_of(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

 private:
  static postgres_server* shared_server() {
    static const std::unique_ptr<postgres_server> only = postgres_server::make();
    return only.get();
  }
  const watchdog bounded_{"postgres"};
};

}  // namespace ulexite::test
