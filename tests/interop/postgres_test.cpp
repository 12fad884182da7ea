// PostgreSQL in fibers, with a real server where Debian's postgresql is installed.

#include <ulexite/interop/postgres.hpp>

#include "postgres_fixture.hpp"

#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulexite::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Interop, Postgres, testing::Values(1, 4), testing::PrintToStringParamName());

TEST_P(Postgres, ThePageWorks) {
  std::string said;
  in_runtime([&] {
    namespace ux = ulexite;
    const std::string where = Postgres::where();
    const auto print = [&](const std::string& text) { said += text + "\n"; };

    // quote begins
    ux::postgres::pool db(where, {.size = 10});  // "host=localhost dbname=bank"
    db.exec("DROP TABLE IF EXISTS account");
    db.exec("CREATE TABLE account AS SELECT id, 100 AS money FROM generate_series(1, 2) AS id");
    db.transaction([](auto& with) {  // repeated after a serialization failure or a deadlock
      with.exec("UPDATE account SET money = money - $1 WHERE id = $2", 30, 1);
      with.exec("UPDATE account SET money = money + $1 WHERE id = $2", 30, 2);
    });
    for (const auto row : db.prepared("SELECT id, money FROM account ORDER BY id")) {
      const auto [id, money] = row.as<int, long>();
      print(std::to_string(id) + " has " + std::to_string(money));
    }
    if (!ux::try_for(50ms, [&] { db.exec("SELECT pg_sleep(3600)"); })) print("given up, and cancelled in the server");
    try {
      db.exec("SELECT 1/0");
    } catch (const ux::postgres::sql_error& error) {  // the connection is good
      print(std::string(error.state()));
    } catch (const ux::postgres::connection_lost& error) {  // safe to repeat unless it was sent
      print(error.sent() ? "unknown outcome" : "not executed");
    }
    // quote ends
  });
  EXPECT_EQ(said, "1 has 70\n2 has 130\ngiven up, and cancelled in the server\n22012\n");
}

TEST_P(Postgres, ConnectErrorsSayWhatIsWrong) {
  in_runtime([] {
    EXPECT_NE(error_of<std::invalid_argument>([] { postgres::pool("hots=here"); }).find("hots"), std::string::npos);
    EXPECT_THROW(postgres::pool("", {.size = 0}), usage_error);
    const auto refused = [](const std::string& where) {
      postgres::pool db(where);
      try {
        db.exec("SELECT 1");
      } catch (const postgres::sql_error& error) {
        return std::string(error.state()) + " " + error.what();
      }
      return std::string("no error");
    };
    const std::string unknown = refused(where() + " dbname=nowhere");
    EXPECT_TRUE(unknown.starts_with("3D000 ") && unknown.find("\"nowhere\"") != unknown.npos) << unknown;
    const std::string wrong = refused(where() + " user=guarded password=wrong");
    EXPECT_TRUE(wrong.starts_with("28P01 ") && wrong.find("\"guarded\"") != wrong.npos) << wrong;

    postgres::pool nobody(where() + " port=1", {.connect_time = 50ms});
    try {
      nobody.exec("SELECT 1");
      ADD_FAILURE();
    } catch (const postgres::connection_lost& error) {
      EXPECT_FALSE(error.sent());
      EXPECT_NE(std::string(error.what()).find(".s.PGSQL.1\""), std::string::npos) << error.what();
    }
    EXPECT_GE(nobody.metrics().connect_failures, 1u);
  });
}

TEST_P(Postgres, ConnectsWithAPasswordAndByName) {
  in_runtime([] {
    postgres::pool named(server().where_by_name());
    named.exec("DROP ROLE IF EXISTS guarded");
    named.exec("CREATE ROLE guarded LOGIN PASSWORD 'right'");
    postgres::pool guarded(where() + " user=guarded password=right");
    EXPECT_EQ(guarded.exec("SELECT current_user").value<std::string>(), "guarded");
    EXPECT_EQ(named.exec("SELECT host(inet_server_addr())").value<std::string>(), "127.0.0.1");
    // Several hosts, of which one is there, and cancelling over TCP.
    postgres::pool several("host=/nowhere,localhost port=1," + server().port() + " user=tester dbname=postgres");
    expect_given_up(several);
  });
}

TEST_P(Postgres, ValuesOfAllTypesGoThereAndBack) {
  in_runtime([] {
    postgres::pool db(where());
    const std::string text = "it's \xc3\xa4 'text'\n";
    const std::vector<std::byte> binary{std::byte{0}, std::byte{0x9f}, std::byte{'\\'}, std::byte{255}};
    const double small = 0.1 + 0.2;
    const auto least = std::numeric_limits<std::int64_t>::min();
    for (const bool prepared : {false, true}) {
      const std::string sql = "SELECT $1::text, $2::bigint, $3::float8, $4::bool, $5::bytea, $6::int, $7::int AS last";
      const auto ask = [&](const auto&... values) {
        return prepared ? db.prepared(sql, values...) : db.exec(sql, values...);
      };
      const auto rows = ask(text, least, small, false, binary, nullptr, std::optional<int>(7));
      const auto [t, i, f, b, bytes, none, some] =
          rows[0]
              .as<std::string_view, std::int64_t, double, bool, std::vector<std::byte>, std::optional<int>,
                  std::optional<int>>();
      EXPECT_EQ(t, text);
      EXPECT_EQ(i, least);
      EXPECT_EQ(f, small);
      EXPECT_FALSE(b);
      EXPECT_EQ(bytes, binary);
      EXPECT_EQ(none, std::nullopt);
      EXPECT_EQ(some, 7);
      EXPECT_EQ(rows[0].get<int>("last"), 7);
      EXPECT_NE(error_of<postgres::value_error>([&] { (void)rows[0].get<int>(1); }).find("\"-9223372036854775808\""),
                std::string::npos);
      EXPECT_NE(error_of<postgres::value_error>([&] { (void)rows[0].get<int>(5); }).find("NULL"), std::string::npos);
      EXPECT_THROW((void)rows[0].get<int>("first"), usage_error);
      EXPECT_THROW((void)rows[0].get<int>(7), usage_error);
      EXPECT_THROW((void)rows[1], usage_error);
      EXPECT_THROW((void)rows[0].as<int>(), usage_error);
      EXPECT_THROW(ask(std::string_view("a\0b", 3), 0, 0, true, binary, 0, 0), usage_error);
    }
    EXPECT_TRUE(std::isnan(db.exec("SELECT $1::float8", std::nan("")).value<double>()));
    int sum = 0;
    for (const auto row : db.exec("SELECT generate_series(1, 10)")) sum += row.get<int>(0);
    EXPECT_EQ(sum, 55);
    EXPECT_EQ(db.exec("SELECT 1; SELECT 2").value<int>(), 2);
    EXPECT_TRUE(db.exec("SELECT 1 WHERE false").empty());
    EXPECT_THROW(db.exec("SELECT nonsense"), postgres::sql_error);
    const std::string much(3'000'000, 'x');  // more than any buffer, in both directions
    EXPECT_EQ(db.exec("SELECT $1", much).value<std::string_view>(), much);
    EXPECT_EQ(db.metrics().connects, 1u);
  });
}

TEST_P(Postgres, PreparesAStatementOnce) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 1});
    const std::string prepared = "SELECT count(*) FROM pg_prepared_statements";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(db.prepared("SELECT $1::int + 1", i).value<int>(), i + 1);
    EXPECT_EQ(db.exec(prepared).value<int>(), 1);
    // A change of its table makes it useless: once it fails.
    db.exec("CREATE TEMPORARY TABLE changing AS SELECT 1 AS a");
    EXPECT_EQ(db.prepared("SELECT * FROM changing")[0].columns(), 1);
    db.exec("ALTER TABLE changing ADD COLUMN b int");
    EXPECT_THROW(db.prepared("SELECT * FROM changing"), postgres::sql_error);
    EXPECT_EQ(db.prepared("SELECT * FROM changing")[0].columns(), 2);
    for (int i = 0; i < 1001; ++i) db.prepared("SELECT " + std::to_string(i));
    EXPECT_LE(db.exec(prepared).value<int>(), 500);

    postgres::pool behind_a_pooler(where(), {.size = 1, .prepare = false});
    EXPECT_EQ(behind_a_pooler.prepared("SELECT $1::int", 5).value<int>(), 5);
    EXPECT_EQ(behind_a_pooler.exec(prepared).value<int>(), 0);
  });
}

TEST_P(Postgres, TransactionsAreWholeOrNothing) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 2});
    make_table(db, "whole");
    const auto count = [&] { return db.exec("SELECT count(*) FROM whole").value<int>(); };
    const auto insert = [](postgres::connection& with) { with.exec("INSERT INTO whole VALUES (1)"); };
    EXPECT_EQ(db.transaction([&](postgres::connection& with) { return insert(with), 42; }), 42);
    EXPECT_EQ(count(), 1);
    struct own {};
    EXPECT_THROW(db.transaction([&](postgres::connection& with) { insert(with), throw own(); }), own);
    // The error of a statement that the body keeps to itself.
    const auto hide_an_error = [&](postgres::connection& with) {
      insert(with);
      EXPECT_THROW(with.exec("SELECT 1/0"), postgres::sql_error);
    };
    EXPECT_NE(error_of<postgres::sql_error>([&] { db.transaction(hide_an_error); }).find("COMMIT"), std::string::npos);
    {
      const auto left_open = db.acquire();
      left_open->exec("BEGIN");
      insert(*left_open);
    }
    EXPECT_EQ(count(), 1);
    // One that has lost its connection before COMMIT had no effect.
    try {
      db.transaction([&](postgres::connection& with) {
        insert(with);
        with.exec("SELECT pg_terminate_backend(pg_backend_pid())");
      });
      ADD_FAILURE();
    } catch (const postgres::connection_lost& error) {
      EXPECT_FALSE(error.sent());
    }
    EXPECT_EQ(count(), 1);
  });
}

// The first attempt reads a row that another transaction changes before it writes.
TEST_P(Postgres, RepeatsATransactionThatCannotBeSerialized) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 2});
    make_table(db, "serial");
    db.exec("INSERT INTO serial VALUES (1)");
    int attempts = 0;
    const auto add_one = [&](postgres::connection& with) {
      const int value = with.exec("SELECT a FROM serial").value<int>();
      if (++attempts == 1) db.exec("UPDATE serial SET a = a + 10");
      with.exec("UPDATE serial SET a = $1", value + 1);
      return value;
    };
    const std::string begin = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    EXPECT_EQ(db.transaction(add_one, {.begin = begin}), 11);
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(db.exec("SELECT a FROM serial").value<int>(), 12);
    attempts = 0;
    EXPECT_THROW(db.transaction(add_one, {.begin = begin, .attempts = 1}), postgres::sql_error);
    EXPECT_EQ(attempts, 1);
    EXPECT_NE(error_of<usage_error>([&] { db.transaction(add_one, {.attempts = 0}); }).find("of 0 attempts"),
              std::string::npos);
    EXPECT_EQ(attempts, 1);
  });
}

TEST_P(Postgres, RepeatsTheVictimOfADeadlock) {
  in_runtime([] {
    postgres::pool db(where() + " options='-c deadlock_timeout=10ms'", {.size = 2});
    make_table(db, "two_rows");
    db.exec("INSERT INTO two_rows VALUES (1), (2)");
    event has_row[3];
    std::atomic<int> attempts{0};
    const auto update = [](postgres::connection& with, int row) {
      with.exec("UPDATE two_rows SET b = coalesce(b, '') || 'x' WHERE a = $1", row);
    };
    const auto both = [&](int mine, int other) {
      db.transaction([&](postgres::connection& with) {
        ++attempts;
        update(with, mine);
        has_row[mine].set();
        has_row[other].wait();
        update(with, other);
      });
    };
    when_all([&] { both(1, 2); }, [&] { both(2, 1); });
    EXPECT_GE(attempts, 3);  // more if both servers see the deadlock at the same time, and both give up
    EXPECT_EQ(db.exec("SELECT string_agg(b, '') FROM two_rows").value<std::string>(), "xxxx");
  });
}

TEST_P(Postgres, ABatchIsOneRoundTripAndOneTransaction) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 1});
    make_table(db, "batched");
    postgres::batch bad;
    bad.add("INSERT INTO batched VALUES ($1, $2)", 1, "one");
    bad.add("INSERT INTO batched VALUES ($1)", "no number");
    bad.add("INSERT INTO batched VALUES (3)");
    try {
      db.run(bad);
      ADD_FAILURE();
    } catch (const postgres::sql_error& error) {
      EXPECT_EQ(error.statement(), 1u);
      EXPECT_EQ(error.state(), "22P02");
    }
    EXPECT_EQ(db.exec("SELECT count(*) FROM batched").value<int>(), 0);
    postgres::batch large;  // more than any buffer, in both directions
    const std::string much(20'000, 'x');
    for (int i = 0; i < 200; ++i) large.add("INSERT INTO batched VALUES ($1, $2) RETURNING *", i, much);
    const auto results = db.run(large);
    ASSERT_EQ(results.size(), 200u);
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(results[static_cast<std::size_t>(i)].value<int>(), i);
      EXPECT_EQ(results[static_cast<std::size_t>(i)][0].get<std::string_view>("b"), much);
    }
    EXPECT_TRUE(db.run(postgres::batch()).empty());
    postgres::batch slow;
    for (int i = 0; i < 10; ++i) slow.add("SELECT pg_sleep(30)");
    expect_given_up(db, [&] { db.run(slow); });
    EXPECT_EQ(db.metrics().connects, 1u);
  });
}

TEST_P(Postgres, CopiesInAndOut) {
  in_runtime([] {
    postgres::pool db(where(), {.size = 1});
    make_table(db, "copied");
    const auto with_rows = [](int rows) {
      return [rows](auto&& write) {
        for (int i = 0; i < rows; ++i) write(std::to_string(i) + "\ttext of row " + std::to_string(i) + "\n");
      };
    };
    EXPECT_EQ(db.acquire()->copy_in("COPY copied FROM STDIN", with_rows(50'000)), 50'000);
    int lines = 0;
    db.acquire()->copy_out("COPY copied TO STDOUT", [&](std::string_view line) {
      const std::string number = std::to_string(lines++);
      EXPECT_EQ(line, number + "\ttext of row " + number + "\n");
    });
    EXPECT_EQ(lines, 50'000);
    const auto refused = [&](auto&& write) { write("no number\ttext\n"), with_rows(10'000)(write); };
    EXPECT_THROW(db.acquire()->copy_in("COPY copied FROM STDIN", refused), postgres::sql_error);
    EXPECT_THROW(db.acquire()->copy_in("SELECT 1", refused), usage_error);
    EXPECT_THROW(db.acquire()->copy_out("COPY copied FROM STDIN", [](auto) {}), usage_error);
    EXPECT_THROW(db.exec("COPY copied TO STDOUT"), usage_error);
    EXPECT_THROW(db.exec(std::string("SELECT 1\0 + 1", 13)), usage_error);
    EXPECT_THROW(db.acquire()->prepared(std::string("SELECT 1\0", 9)), usage_error);
    EXPECT_THROW(postgres::batch().add(std::string("SELECT 1\0", 9)), usage_error);
    EXPECT_THROW(postgres::pool(std::string("dbname=a\0b", 10)), std::invalid_argument);
    // Given up in the middle, by an exception or a request to stop.
    struct own {};
    EXPECT_THROW(
        db.acquire()->copy_in("COPY copied FROM STDIN", [&](auto&& write) { with_rows(9)(write), throw own(); }), own);
    EXPECT_THROW(db.acquire()->copy_out("COPY copied TO STDOUT", [](auto) { throw own(); }), own);
    for (const bool in : {true, false}) {
      event begun;
      auto copying = spawn([&] {
        const auto wait = [&] { begun.set(), this_fiber::sleep_for(bound); };
        if (in)
          db.acquire()->copy_in("COPY copied FROM STDIN", [&](auto&& write) { with_rows(9)(write), wait(); });
        else
          db.acquire()->copy_out("COPY copied TO STDOUT", [&](auto) { wait(); });
      });
      begun.wait();
      copying.request_stop();
      EXPECT_THROW(copying.get(), operation_cancelled);
    }
    EXPECT_EQ(db.exec("SELECT count(*) FROM copied").value<int>(), 50'000);
    EXPECT_EQ(db.metrics().connects, 1u);
    EXPECT_EQ(db.metrics().dropped, 0u);
    for (const char* const copy : {"COPY copied FROM STDIN", "COPY copied TO STDOUT"}) {
      postgres::batch with_a_copy;
      with_a_copy.add("SELECT 1");
      with_a_copy.add(copy);
      with_a_copy.add("SELECT 2");
      EXPECT_THROW(db.acquire()->run(with_a_copy), usage_error);
      EXPECT_EQ(db.exec("SELECT count(*) FROM copied").value<int>(), 50'000);
    }
    EXPECT_EQ(db.metrics().dropped, 2u);
  });
}

TEST_P(Postgres, AListenerConnectsAgainAndReportsTheGap) {
  using kind = postgres::notification::kind;
  in_runtime([] {
    postgres::listener hearing(where(), {"news", "Other \"channel\""});
    EXPECT_EQ(hearing.next().what, kind::connected);
    postgres::pool db(where(), {.size = 1});
    db.exec("NOTIFY news, 'first'");
    const auto first = hearing.next();
    EXPECT_EQ(first.what, kind::message);
    EXPECT_EQ(first.channel, "news");
    EXPECT_EQ(first.payload, "first");
    EXPECT_THROW(timeout(1ms, [&] { hearing.next(); }), deadline_exceeded);  // loses nothing
    db.exec("NOTIFY \"Other \"\"channel\"\"\"");
    EXPECT_EQ(hearing.next().channel, "Other \"channel\"");
    db.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
    EXPECT_EQ(hearing.next().what, kind::connected);
    db.exec("NOTIFY news, 'last'");
    EXPECT_EQ(hearing.next().payload, "last");
  });
}

}  // namespace
}  // namespace ulexite::test
