// What cancellations, a frozen server and restarts do to interop/postgres.hpp. ULEXITE_POSTGRES_SECONDS is the time of
// each storm.

#include <ulexite/interop/postgres.hpp>

#include "postgres_fixture.hpp"

#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>

#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

namespace ulexite::test {
namespace {

std::chrono::duration<double> storm_time() {
  const char* const seconds = std::getenv("ULEXITE_POSTGRES_SECONDS");
  return std::chrono::duration<double>(seconds ? std::atof(seconds) : 0.7);
}

class PostgresFailures : public Postgres {};
INSTANTIATE_TEST_SUITE_P(Interop, PostgresFailures, testing::Values(1, 4), testing::PrintToStringParamName());

TEST_P(PostgresFailures, AFiberThatIsStoppedOrLateLeavesAtOnce) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 1});
    expect_given_up(db);
    EXPECT_FALSE(try_for(1ms, [&] { db.exec("SELECT pg_sleep(30)"); }));
    // One that has been stopped before sends nothing.
    make_table(db, "stopped");
    event go;
    auto late = spawn([&] {
      const auto with = db.acquire();
      {
        const shield until_stopped;
        go.wait();
      }
      with->exec("INSERT INTO stopped VALUES (1)");
    });
    late.request_stop();
    go.set();
    EXPECT_THROW(late.get(), operation_cancelled);
    EXPECT_EQ(db.exec("SELECT count(*) FROM stopped").value<int>(), 0);
    // Its connection cannot be used by a caller that keeps it.
    {
      const auto with = db.acquire();
      EXPECT_FALSE(try_for(1ms, [&] { with->exec("SELECT pg_sleep(30)"); }));
      EXPECT_THROW(with->exec("SELECT 1"), usage_error);
    }
    EXPECT_EQ(db.exec("SELECT 1").value<int>(), 1);
    EXPECT_EQ(db.metrics().connects, 1u);
  });
}

// The process of the server ignores a request to cancel that it gets before it has read the statement.
TEST_P(PostgresFailures, RepeatsARequestToCancelThatCameTooEarly) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 1, .mend_time = bound});
    const int process = db.exec("SELECT pg_backend_pid()").value<int>();
    EXPECT_EQ(::kill(process, SIGSTOP), 0);
    EXPECT_FALSE(try_for(5ms, [&] { db.exec("SELECT pg_sleep(3000)"); }));
    wait_until([&] { return db.metrics().cancels >= 2; });  // so the first has arrived
    EXPECT_EQ(::kill(process, SIGCONT), 0);
    EXPECT_EQ(db.exec("SELECT pg_backend_pid()").value<int>(), process);
    EXPECT_EQ(db.metrics().mended, 1u);
  });
}

TEST_P(PostgresFailures, AServerThatIsFrozenHoldsNobody) {
  in_runtime([] {
    clock::time_point begin;
    clock::duration left{};
    {
      postgres::pool db(where(), {.size = 3, .mend_time = 200ms});
      task_group asking(on_error::keep_going);
      std::atomic<int> stopped{0};
      for (int i = 0; i < 3; ++i)
        asking.spawn([&] {
          try {
            db.exec("SELECT pg_sleep(30)");
          } catch (const operation_cancelled&) {
            ++stopped;
            throw;
          }
        });
      await_statements(3);
      server().freeze();
      begin = clock::now();
      asking.request_stop();
      asking.wait();
      left = clock::now() - begin;
      EXPECT_EQ(stopped, 3);
      EXPECT_THROW(timeout(50ms, [&] { db.exec("SELECT 1"); }), deadline_exceeded);
    }
    const auto ended = clock::now() - begin;
    server().thaw();
    EXPECT_GE(ended, 200ms);
    EXPECT_LT(ended, 10s);
    EXPECT_LT(left, 10s);
    postgres::pool db(where());
    db.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'");
  });
}

// A silent server is asked whether it is there. connect_time is longer than a connect takes on a slow machine.
TEST_P(PostgresFailures, AListenerNoticesAFrozenServer) {
  using kind = postgres::notification::kind;
  in_runtime([] {
    postgres::listener hearing(where(), {"news"}, {.connect_time = 1s, .check_time = 10ms});
    EXPECT_EQ(hearing.next().what, kind::connected);
    EXPECT_FALSE(try_for(100ms, [&] { hearing.next(); }));  // some checks, of which the last may be cut off
    auto hear = spawn([&] { return hearing.next(); });
    server().freeze();
    this_fiber::sleep_for(1200ms);  // the check fails, and then it cannot connect
    server().thaw();
    EXPECT_EQ(hear.get().what, kind::connected);
  });
}

// What the fibers of a storm of cancellations saw.
struct seen {
  std::atomic<int> right{0}, wrong{0}, late{0}, stopped{0};
};

// Statements that end by themselves or by a deadline that is about as long as they take.
void ask_with_deadlines(postgres::pool& db, std::minstd_rand& random, int fiber, int round, seen& all) {
  const std::string mine = std::to_string(fiber) + ":" + std::to_string(round);
  if (random() % 4 != 0) {
    const auto answer =
        random() % 2 ? db.exec("SELECT $1::text, pg_sleep(0.001)", mine) : db.prepared("SELECT $1", mine);
    ++(answer.value<std::string_view>() == mine ? all.right : all.wrong);
    return;
  }
  const char* const slow = random() % 2 ? "SELECT pg_sleep(30)" : "SELECT pg_sleep(0.005)";
  const auto with = db.acquire();
  if (!try_for(std::chrono::microseconds(random() % 8000), [&] { with->exec(slow); })) ++all.late;
}

// A fiber that is stopped somewhere in a transaction, in the middle of a large result, or in a batch.
void ask_and_stop(postgres::pool& db, std::minstd_rand& random, seen& all) {
  event begun;
  auto asking = spawn([&, how = random() % 3] {
    if (how == 0)
      db.transaction([&](postgres::connection& with) {
        begun.set();
        with.exec("INSERT INTO cancelled VALUES (1)");
        with.exec("SELECT pg_sleep(30)");
      });
    const auto with = db.acquire();
    begun.set();
    if (how == 1) with->exec("SELECT repeat('x', 1000), pg_sleep(0.0001) FROM generate_series(1, 1000000)");
    if (how == 2) {
      postgres::batch both;
      both.add("INSERT INTO cancelled VALUES (1)");
      both.add("SELECT pg_sleep(30)");
      with->run(both);
    }
  });
  begun.wait();
  this_fiber::sleep_for(std::chrono::microseconds(random() % 5'000));
  asking.request_stop();
  try {
    asking.get();
    ++all.wrong;  // it had no time to end
  } catch (const operation_cancelled&) {
    ++all.stopped;
  }
}

TEST_P(PostgresFailures, CancellationsMixUpNoAnswers) {
  in_runtime([] {
    constexpr int size = 8;
    seen all;
    std::atomic<bool> over{false};
    postgres::pool db(where() + " application_name=storm", {.size = size, .mend_time = bound});
    make_table(db, "cancelled");
    task_group storm;
    for (int fiber = 0; fiber < 40; ++fiber)
      storm.spawn([&, fiber] {
        std::minstd_rand random(static_cast<unsigned>(fiber) + 1);
        for (int round = 0; !over; ++round)
          if (random() % 6 != 0)
            ask_with_deadlines(db, random, fiber, round, all);
          else
            ask_and_stop(db, random, all);
      });
    storm.spawn([&] {
      postgres::connection watching(where());
      const std::string count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'storm'";
      while (!over) EXPECT_LE(watching.exec(count).value<int>(), size);
    });
    this_fiber::sleep_for(storm_time());
    wait_until([&] { return all.right > 0 && all.late > 0 && all.stopped > 0; });  // on a slow machine
    over = true;
    storm.wait();
    EXPECT_EQ(all.wrong, 0);
    EXPECT_EQ(db.exec("SELECT count(*) FROM cancelled").value<int>(), 0);
    const auto counts = db.metrics();
    EXPECT_LE(counts.connects, size);
    EXPECT_EQ(counts.dropped, 0u);
    EXPECT_GT(counts.mended, 0u);
    std::printf("right %d, late %d, stopped %d; connects %d, cancels %d, mended %d\n", all.right.load(),
                all.late.load(), all.stopped.load(), static_cast<int>(counts.connects),
                static_cast<int>(counts.cancels), static_cast<int>(counts.mended));
  });
}

// What became of the keys that were inserted.
struct ledger {
  mutex guard;
  std::vector<int> done, not_sent, unknown;
};

void insert_keys(postgres::pool& db, std::atomic<int>& next, const std::atomic<bool>& over, ledger& all) {
  while (!over) {
    const int key = next++;
    std::vector<int>* outcome = &all.unknown;
    try {
      if (try_for(bound, [&] { db.prepared("INSERT INTO ledger VALUES ($1)", key); })) outcome = &all.done;
    } catch (const postgres::connection_lost& error) {
      if (!error.sent()) outcome = &all.not_sent;
    }
    const std::lock_guard lock(all.guard);
    outcome->push_back(key);
  }
}

// While the server restarts: each key that was acknowledged is there, and none that was not sent.
void restart_under_a_ledger(postgres_server& server, const char* mode) {
  ledger all;
  std::atomic<int> next{0};
  std::atomic<bool> over{false};
  postgres::pool db(server.where(), {.size = 8, .connect_time = bound});
  db.exec("DROP TABLE IF EXISTS ledger; CREATE TABLE ledger(a int, b text)");
  task_group writers;
  for (int i = 0; i < 40; ++i) writers.spawn([&] { insert_keys(db, next, over, all); });
  this_fiber::sleep_for(storm_time() / 4);
  blocking([&] {
    server.stop(mode);
    server.start();
  });
  const auto before = [&] {
    const std::lock_guard lock(all.guard);
    return all.done.size();
  };
  wait_until([&, at_least = before() + 100] { return before() > at_least; });  // they go on
  this_fiber::sleep_for(storm_time() / 4);
  over = true;
  writers.wait();
  std::multiset<int> there;
  for (const auto row : db.exec("SELECT a FROM ledger")) there.insert(row.get<int>(0));
  for (const int key : all.done) EXPECT_EQ(there.count(key), 1u) << key;
  for (const int key : all.not_sent) EXPECT_EQ(there.count(key), 0u) << key;
  for (const int key : all.unknown) EXPECT_LE(there.count(key), 1u) << key;
  EXPECT_LE(all.unknown.size(), 16u);  // one for each connection, when it ended
  std::printf("%s: done %d, not sent %d, unknown %d\n", mode, static_cast<int>(all.done.size()),
              static_cast<int>(all.not_sent.size()), static_cast<int>(all.unknown.size()));
}

TEST_P(PostgresFailures, ARestartOfTheServerLosesNothingThatWasAcknowledged) {
  in_runtime([] {
    for (const char* const mode : {"fast", "immediate"}) restart_under_a_ledger(server(), mode);
  });
}

}  // namespace
}  // namespace ulexite::test
