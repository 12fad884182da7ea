// libpq over the waits of a fiber, with a real server where Debian's postgresql is installed.

#include "net_fixture.hpp"
#include "support/postgres_server.hpp"
#include "support/watchdog.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>

namespace ulexite::test {
namespace {

template <auto Free>
struct free_with {
  void operator()(auto* what) const noexcept { Free(what); }
};
using owned_connection = std::unique_ptr<PGconn, free_with<PQfinish>>;
using owned_result = std::unique_ptr<PGresult, free_with<PQclear>>;

owned_connection connect(const std::string& where) {
  owned_connection made(PQconnectStart(where.c_str()));
  for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQconnectPoll(made.get())) {
    if (next == PGRES_POLLING_FAILED) throw std::runtime_error(PQerrorMessage(made.get()));
    net::wait_fd(PQsocket(made.get()), next == PGRES_POLLING_READING ? net::interest::read : net::interest::write);
  }
  EXPECT_EQ(PQsetnonblocking(made.get(), 1), 0);
  return made;
}

void flush(PGconn* to) {
  while (PQflush(to) == 1) {
    const auto ready = net::wait_fd(PQsocket(to), net::interest::read_write);
    if ((ready & net::interest::read) != net::interest::none) EXPECT_EQ(PQconsumeInput(to), 1);
  }
}

// The next result of what was sent; nullptr after the last.
owned_result next_result(PGconn* from) {
  while (PQisBusy(from) == 1) {
    net::wait_fd(PQsocket(from), net::interest::read);
    if (PQconsumeInput(from) != 1) throw std::runtime_error(PQerrorMessage(from));
  }
  return owned_result(PQgetResult(from));
}

// The first field of the answer, or the error.
std::string query(PGconn* with, const std::string& text) {
  EXPECT_EQ(PQsendQuery(with, text.c_str()), 1);
  flush(with);
  std::string answer;
  while (const owned_result result = next_result(with)) {
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR) answer = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    if (PQntuples(result.get()) > 0) answer = PQgetvalue(result.get(), 0, 0);
  }
  return answer;
}

// Until so many queries wait in the server for a lock.
void await_waiting(PGconn* with, int count) {
  const std::string waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  wait_until([&] { return query(with, waiting) == std::to_string(count); });
}

// Each query waits in the server for what another fiber does: none of them holds a worker.
void take_turns(const std::string& where) {
  constexpr int count = 8;
  const owned_connection first = connect(where);
  query(first.get(), "SELECT pg_advisory_lock(1)");
  scope([&](task_group& others) {
    for (int i = 0; i < count; ++i) {
      others.spawn([&where] {
        const owned_connection mine = connect(where);
        query(mine.get(), "SELECT pg_advisory_lock_shared(1)");
        EXPECT_EQ(query(mine.get(), "SELECT 6 * 7"), "42");
      });
    }
    await_waiting(first.get(), count);
    query(first.get(), "SELECT pg_advisory_unlock(1)");
  });
}

// Both directions are full at times: a query and a result that fit into no buffer.
void send_much(const std::string& where) {
  const owned_connection mine = connect(where);
  const std::string much(3'000'000, 'x');
  EXPECT_EQ(query(mine.get(), "SELECT '" + much + "'"), much);
}

void meet_errors(const std::string& where) {
  const owned_connection mine = connect(where);
  EXPECT_EQ(query(mine.get(), "SELECT nonsense"), "42703");  // undefined_column
  EXPECT_EQ(query(mine.get(), "SELECT 1"), "1");
  EXPECT_THROW(connect(where + " port=1"), std::runtime_error);
}

// A fiber that is stopped gives its query up, and cancels it in the server too (PQcancel blocks: for a moment). Then
// the connection is as good as ever.
void give_up(const std::string& where) {
  const owned_connection mine = connect(where), holder = connect(where);
  query(holder.get(), "SELECT pg_advisory_lock(2)");
  auto asking = spawn([&] { query(mine.get(), "SELECT pg_advisory_lock(2)"); });
  await_waiting(holder.get(), 1);
  asking.request_stop();
  EXPECT_THROW(asking.get(), operation_cancelled);
  char why[256];
  PGcancel* const cancel = PQgetCancel(mine.get());
  EXPECT_EQ(PQcancel(cancel, why, sizeof why), 1) << why;
  PQfreeCancel(cancel);
  const owned_result cancelled = next_result(mine.get());
  EXPECT_STREQ(PQresultErrorField(cancelled.get(), PG_DIAG_SQLSTATE), "57014");  // query_canceled
  EXPECT_EQ(next_result(mine.get()), nullptr);
  EXPECT_EQ(query(mine.get(), "SELECT 1"), "1");
}

// One test, because the server starts slowly.
TEST(Libpq, RunsInFibers) {
  const watchdog bounded("libpq", nullptr, 300);
  const std::unique_ptr<postgres_server> server = postgres_server::make();
  if (!server) GTEST_SKIP() << "postgresql is not installed";
  for (const std::size_t threads : {1, 2, 4}) {
    runtime rt({.threads = threads});
    rt.run([&] {
      for (const auto part : {take_turns, send_much, meet_errors, give_up})
        timeout(bound, [&] { part(server->where()); });
    });
    EXPECT_EQ(rt.metrics().lost_wakeups, 0u);
  }
}

}  // namespace
}  // namespace ulexite::test
