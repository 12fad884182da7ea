#pragma once

// A connection of interop/postgres.hpp: statements, batches and COPY, in fibers.

#include <ulexite/base/error.hpp>
#include <ulexite/interop/postgres_connect.hpp>
#include <ulexite/interop/postgres_values.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <libpq-fe.h>

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#ifndef LIBPQ_HAS_PIPELINING
#error "ulexite/interop/postgres.hpp needs libpq 14 or newer"
#endif

namespace ulexite::postgres {

// How a connection works.
struct connection_options {
  // Whether prepared() prepares. False: it works as exec(), because some poolers hand each transaction to another
  // process of the server.
  bool prepare = true;
};

// A connection to a PostgreSQL server. One fiber or plain thread at a time may use it. As a rule a pool makes it.
//
// Every call that talks to the server waits for it, and is a cancellation point. A caller that is stopped, or whose
// deadline passes, leaves at once, although the server goes on; so the outcome of its statement is unknown. Until the
// pool has mended the connection, each further statement throws usage_error. The calls throw sql_error if the server
// refuses a statement, which had no effect then. They throw connection_lost if the connection ends.
//
// A statement with a NUL is a usage_error. A parameter is a number, a bool, text, a span of std::byte for bytea,
// nullptr for NULL, or a std::optional of these.
class connection {
 public:
  // Connects. `conninfo` is as for libpq: keywords and values, or a URI. Waits without a limit of its own. Throws
  // std::invalid_argument for a bad `conninfo`. Throws sql_error if the server refuses the connection for good, such as
  // for a wrong password or an unknown database. Throws connection_lost if the server is not there, starts, or has no
  // room.
  explicit connection(const std::string& conninfo, connection_options options = {})
      : link_(conninfo), options_(options) {}

  // Executes a statement with the parameters $1, $2, ... Without parameters it may be several statements, separated by
  // semicolons, which are one transaction; the result is that of the last.
  template <class... P>
  result exec(const std::string& sql, const P&... values) {
    detail::refuse_nul("a statement", sql);
    if constexpr (sizeof...(P) == 0) {
      return execute([&] { return PQsendQuery(get(), sql.c_str()); });
    } else {
      const detail::parameters<sizeof...(P)> all(values...);
      return execute(
          [&] { return PQsendQueryParams(get(), sql.c_str(), all.size(), nullptr, all.data(), nullptr, nullptr, 0); });
    }
  }

  // As exec, but the server parses and plans the statement at its first use on this connection only. It is quicker for
  // a statement whose text is always the same. After 500 different ones it forgets all.
  template <class... P>
  result prepared(const std::string& sql, const P&... values) {
    detail::refuse_nul("a statement", sql);
    const detail::parameters<sizeof...(P)> all(values...);
    if (!options_.prepare)
      return execute(
          [&] { return PQsendQueryParams(get(), sql.c_str(), all.size(), nullptr, all.data(), nullptr, nullptr, 0); });
    const std::string& name = name_of(sql);
    try {
      return execute(
          [&] { return PQsendQueryPrepared(get(), name.c_str(), all.size(), all.data(), nullptr, nullptr, 0); });
    } catch (const sql_error& error) {
      // The server has forgotten it, or a table of it has changed: the next call prepares it again.
      if (error.state() == "26000" || error.state() == "0A000") statements_.erase(sql);
      throw;
    }
  }

  // Sends all statements together, in one round trip, and returns their results in order. Outside of a transaction they
  // are one: if one fails, none has an effect, and sql_error tells which. Throws usage_error for a COPY with STDIN or
  // STDOUT, which ends the connection. PostgreSQL 14 or newer.
  std::vector<result> run(const batch& all) {
    begin();
    send(all);
    std::vector<result> results(all.size());
    std::optional<sql_error> first;
    for (std::size_t i = 0; i < all.size(); ++i) {
      while (result got = next()) {
        refuse_copy(got, true);
        if (PQresultStatus(got.native_handle()) == PGRES_FATAL_ERROR && !first)
          first = error_of(got, i);  // those behind it are PGRES_PIPELINE_ABORTED
        else
          results[i] = std::move(got);
      }
    }
    const result sync = next();
    if (PQresultStatus(sync.native_handle()) != PGRES_PIPELINE_SYNC || !PQexitPipelineMode(get())) lost(true);
    busy_ = false;
    if (first) throw *first;
    return results;
  }

  // COPY ... FROM STDIN: calls fill(write), which calls write(std::string_view) with the next part of the data as often
  // as it likes. Returns the number of rows. If `fill` throws, no row is there, and the connection is as after a
  // cancellation.
  template <class Fill>
  long copy_in(const std::string& sql, Fill&& fill) {
    if (!begin_copy(sql, PGRES_COPY_IN)) throw usage_error("ulexite::postgres: no COPY FROM STDIN: " + sql);
    std::size_t unsent = 0;
    fill([&](std::string_view data) {
      while (!data.empty()) {
        constexpr std::size_t limit = 1 << 16;
        const std::string_view part = data.substr(0, limit);
        put([&] { return PQputCopyData(get(), part.data(), static_cast<int>(part.size())); });
        data.remove_prefix(part.size());
        if ((unsent += part.size()) < limit) continue;
        flush();  // otherwise libpq's buffer grows without a limit
        unsent = 0;
      }
    });
    put([&] { return PQputCopyEnd(get(), nullptr); });
    flush();
    return finish(next()).affected();
  }

  // COPY ... TO STDOUT: calls take(std::string_view) with each row as the server sends it, a line in the text format.
  // If `take` throws, the connection is as after a cancellation.
  template <class Take>
  void copy_out(const std::string& sql, Take&& take) {
    if (!begin_copy(sql, PGRES_COPY_OUT)) throw usage_error("ulexite::postgres: no COPY TO STDOUT: " + sql);
    for (auto [text, size] = next_row(); text; std::tie(text, size) = next_row())
      take(std::string_view(text.get(), size));
    finish(next());
  }

  // Whether a transaction is open, or has failed and is not rolled back.
  [[nodiscard]] bool in_transaction() const noexcept { return PQtransactionStatus(get()) > PQTRANS_ACTIVE; }
  // For libpq's functions that do not talk to the server, such as PQescapeIdentifier.
  [[nodiscard]] PGconn* native_handle() const noexcept { return get(); }

 private:
  friend class pool;
  friend class listener;

  [[nodiscard]] PGconn* get() const noexcept { return link_.get(); }
  [[noreturn]] void lost(bool sent) {
    lost_ = true;
    throw connection_lost(std::string("ulexite::postgres: ") + PQerrorMessage(get()), sent);
  }

  void begin() {
    if (lost_) throw connection_lost("ulexite::postgres: the connection was lost before", false);
    if (busy_) throw usage_error("ulexite::postgres: a statement of this connection was given up before");
    this_fiber::check();  // a fiber that has been stopped sends nothing
    busy_ = true;
  }
  template <class Send>
  result execute(Send&& send) {
    start(send);
    return finish(next());
  }
  template <class Send>
  void start(Send&& send) {
    begin();
    if (!send()) lost(false);
    flush();
  }
  // A COPY that nobody reads or feeds has no end. What waits behind it in a batch, and a replication, cannot be mended.
  void refuse_copy(const result& got, bool in_batch) {
    const auto status = PQresultStatus(got.native_handle());
    if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT && status != PGRES_COPY_BOTH) return;
    if (in_batch || status == PGRES_COPY_BOTH) lost_ = true;
    throw usage_error("ulexite::postgres: COPY with STDIN or STDOUT is for copy_in and copy_out");
  }
  // Takes the results up to the end of the statement, and returns the last.
  result finish(result last) {
    for (;;) {
      refuse_copy(last, false);
      result more = next();
      if (!more) break;
      last = std::move(more);
    }
    busy_ = false;
    if (const auto status = PQresultStatus(last.native_handle());
        status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)
      throw error_of(last, 0);
    return last;
  }
  // Throws if the error has ended the connection.
  sql_error error_of(const result& failed, std::size_t statement) {
    const auto field = [&](int code) {
      const char* const text = PQresultErrorField(failed.native_handle(), code);
      return std::string_view(text ? text : "");
    };
    const auto severity = field(PG_DIAG_SEVERITY_NONLOCALIZED), state = field(PG_DIAG_SQLSTATE);
    const std::string text = std::string("ulexite::postgres: ") + PQresultErrorMessage(failed.native_handle());
    if (state.empty() || severity == "FATAL" || severity == "PANIC") {
      lost_ = true;
      throw connection_lost(text, true);
    }
    return {state, text, statement};
  }

  // The name of a prepared statement. A name is never used twice, because the server may have prepared one of a fiber
  // that was cancelled.
  const std::string& name_of(const std::string& sql) {
    if (const auto found = statements_.find(sql); found != statements_.end()) return found->second;
    constexpr std::size_t limit = 500;
    if (statements_.size() == limit) {
      exec("DEALLOCATE ALL");
      statements_.clear();
    }
    const std::string name = "ulexite_" + std::to_string(++names_);
    execute([&] { return PQsendPrepare(get(), name.c_str(), sql.c_str(), 0, nullptr); });
    return statements_[sql] = name;
  }

  void send(const batch& all) {
    lost_ = true;  // if an exception ends this: without its sync a pipeline has no end
    if (!PQenterPipelineMode(get())) lost(false);
    std::vector<const char*> values;
    for (const auto& [sql, texts] : all.statements_) {
      values.resize(texts.size());
      detail::point_to(texts, values);
      if (!PQsendQueryParams(get(), sql.c_str(), static_cast<int>(values.size()), nullptr, values.data(), nullptr,
                             nullptr, 0))
        lost(true);
    }
    if (!PQpipelineSync(get())) lost(true);
    lost_ = false;
    flush();
  }

  // False: it is another statement, whose results were taken.
  bool begin_copy(const std::string& sql, ExecStatusType wanted) {
    detail::refuse_nul("a statement", sql);
    start([&] { return PQsendQuery(get(), sql.c_str()); });
    result begun = next();
    if (PQresultStatus(begun.native_handle()) == wanted) return true;
    finish(std::move(begun));
    return false;
  }
  template <class Put>
  void put(Put&& data) {
    for (;;) {
      const int done = data();
      if (done < 0) lost(true);
      if (done > 0) return;
      wait_to_write();
    }
  }
  using copied = std::unique_ptr<char, detail::free_with<PQfreemem>>;
  // The next row of a COPY, or null at the end, and its length.
  std::pair<copied, std::size_t> next_row() {
    for (;;) {
      char* text = nullptr;
      const int size = PQgetCopyData(get(), &text, 1);
      if (size > 0) return {copied(text), static_cast<std::size_t>(size)};
      if (size == -1) return {};
      if (size < 0) lost(true);
      await_input();
    }
  }

  void flush() {
    for (;;) {
      const int left = PQflush(get());
      if (left == 0) return;
      if (left < 0) lost(true);
      wait_to_write();
    }
  }
  // Reads too, because the server may not read on before it could write.
  void wait_to_write() {
    const auto ready = net::wait_fd(PQsocket(get()), net::interest::read_write);
    if ((ready & net::interest::read) != net::interest::none && !PQconsumeInput(get())) lost(true);
    if ((ready & net::interest::write) != net::interest::none && PQflush(get()) < 0) lost(true);
  }
  void await_input() {
    net::wait_fd(PQsocket(get()), net::interest::read);
    if (!PQconsumeInput(get())) lost(true);
  }
  result next() {
    while (PQisBusy(get())) await_input();
    return result(PQgetResult(get()));
  }

  // ---- for the pool ----

  [[nodiscard]] bool is_lost() const noexcept { return lost_ || PQstatus(get()) != CONNECTION_OK; }
  [[nodiscard]] bool needs_mending() const noexcept { return busy_ || in_transaction(); }
  // Whether the server has sent nothing: an idle connection that has something to read is about to end, as a rule.
  [[nodiscard]] bool is_quiet() const noexcept {
    pollfd read{PQsocket(get()), POLLIN, 0};
    return !is_lost() && ::poll(&read, 1, 0) == 0;
  }

  // Makes the connection as good as new: cancels the statement that was given up, takes the rest of its answer, and
  // rolls back. Calls on_cancel() for each request.
  template <class OnCancel>
  void mend(OnCancel&& on_cancel) {
    if (busy_) {
      // The process of the server may not have read the statement when it gets the signal, and then ignores that. So
      // the request is repeated.
      for (auto patience = std::chrono::milliseconds(20);; patience *= 2) {
        on_cancel();
        try {
          link_.cancel();
        } catch (const operation_cancelled&) {
          throw;
        } catch (const std::system_error&) {  // the server has no room for it at the moment
        }
        if (try_for(patience, [this] { drain(); })) break;
      }
      try {
        exec("SELECT 1");  // behind a pooler the request may come later: then this takes it, not the next user's
      } catch (const sql_error&) {
      }
    }
    if (in_transaction()) exec("ROLLBACK");
  }
  // Takes what is left of the answer. May be called again if its wait was ended.
  void drain() {
    bool is_pipeline = PQpipelineStatus(get()) != PQ_PIPELINE_OFF;
    for (;;) {
      flush();
      const result got = next();
      if (!got && !is_pipeline) break;
      switch (PQresultStatus(got.native_handle())) {
        case PGRES_COPY_IN:
          if (PQputCopyEnd(get(), "given up") < 0) lost(true);
          break;
        case PGRES_COPY_OUT:
          while (next_row().first) {
          }
          break;
        case PGRES_PIPELINE_SYNC:
          if (!PQexitPipelineMode(get())) lost(true);
          is_pipeline = false;
          break;
        default: break;
      }
    }
    busy_ = false;
  }

  detail::link link_;
  const connection_options options_;
  std::unordered_map<std::string, std::string> statements_;  // the names of those that are prepared
  std::size_t names_ = 0;
  bool busy_ = false;  // a statement is under way, or was given up
  bool lost_ = false;
};

}  // namespace ulexite::postgres
