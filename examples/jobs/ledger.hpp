#pragma once

// The ledger in PostgreSQL: the effect of a job and its name are written in one statement, so a job that is done again
// has no second effect.

#include "queue.hpp"

#include <ulexite/interop/postgres.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace jobs {

// Any number of fibers may use it. Its functions wait while the server is away, are cancellation points, and throw
// ulexite::postgres::sql_error if the server refuses a statement. On stderr it tells when the server goes away and when
// it is back.
class ledger {
 public:
  // Does not connect yet. Throws std::invalid_argument for a bad `conninfo`.
  explicit ledger(const std::string& conninfo) : db_(conninfo, {.size = 8}) {}

  // Makes the tables, if there are none.
  void make_tables() {
    repeat([&] {
      // Made last below. The locks of CREATE would hold up the workers that are there already.
      auto last = db_.exec("SELECT to_regclass('ledger_done_at') IS NOT NULL");
      if (last[0].get<bool>(0)) return last;
      return db_.transaction([](auto& with) {
        with.exec("SELECT pg_advisory_xact_lock(7521)");  // workers that start together would collide
        with.exec(
            "CREATE TABLE IF NOT EXISTS ledger (job text PRIMARY KEY, times int NOT NULL, "
            "done_at timestamptz NOT NULL DEFAULT now())");
        with.exec("CREATE TABLE IF NOT EXISTS totals (part int PRIMARY KEY, ms bigint NOT NULL)");
        with.exec("INSERT INTO totals SELECT n, 0 FROM generate_series(0, 15) n ON CONFLICT DO NOTHING");
        return with.exec("CREATE INDEX IF NOT EXISTS ledger_done_at ON ledger (done_at)");
      });
    });
  }
  // Adds the job's milliseconds to the totals, unless it was done before. Returns how often it was done. Repeats the
  // statement if the connection ends in between, which may count the job once more.
  int count(const job& what) {
    static const std::string sql =
        "WITH mine AS (INSERT INTO ledger (job, times) VALUES ($1, 1) ON CONFLICT (job) "
        "DO UPDATE SET times = ledger.times + 1, done_at = now() RETURNING times), "
        "effect AS (UPDATE totals SET ms = ms + $2::bigint WHERE part = $3::int AND (SELECT times FROM mine) = 1) "
        "SELECT times FROM mine";
    const int part = static_cast<int>(std::hash<std::string>{}(what.name) % 16);
    return repeat([&] { return db_.prepared(sql, what.name, what.milliseconds, part); })[0].get<int>(0);
  }
  // Removes the names of jobs that were done longer ago than `age`, at most 10,000 of them.
  void purge(std::chrono::seconds age) {
    repeat([&] {
      return db_.exec(
          "DELETE FROM ledger WHERE job IN (SELECT job FROM ledger WHERE done_at < now() - make_interval(secs => $1) "
          "ORDER BY done_at LIMIT 10000 FOR UPDATE SKIP LOCKED)",
          static_cast<double>(age.count()));
    });
  }

 private:
  template <class F>
  ulexite::postgres::result repeat(F&& function) {
    for (;;) {
      try {
        auto got = function();
        if (away_.exchange(false, std::memory_order_relaxed)) std::fprintf(stderr, "jobs: PostgreSQL is back\n");
        return got;
      } catch (const ulexite::postgres::connection_lost& why) {
        tell_once(why.what());
      } catch (const ulexite::postgres::sql_error& why) {
        if (!is_about_the_server(why)) throw;
        tell_once(why.what());
      }
      ulexite::this_fiber::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // Whether the server and not the statement is at fault: it lacks memory or disk (53), stops or starts (57), cannot
  // read a file (58).
  static bool is_about_the_server(const ulexite::postgres::sql_error& why) {
    for (const char* const each : {"53", "57", "58"})
      if (why.state().starts_with(each)) return true;
    return why.may_succeed_later();
  }
  void tell_once(const char* why) {
    if (!away_.exchange(true, std::memory_order_relaxed)) std::fprintf(stderr, "jobs: PostgreSQL is away: %s\n", why);
  }

  ulexite::postgres::pool db_;
  std::atomic<bool> away_{false};  // for the words on stderr only
};

}  // namespace jobs
