#pragma once

// PostgreSQL in fibers, over libpq: a pool of connections, transactions, batches, COPY and LISTEN.
//
//   ulexite::postgres::pool db("host=db.example.org dbname=shop", {.size = 10});
//   const auto users = db.exec("SELECT id, name FROM users WHERE age > $1", 17);
//   for (const auto user : users) greet(user.get<int>("id"), user.get<std::string>("name"));
//   db.transaction([&](auto& with) {
//     with.exec("UPDATE stock SET count = count - 1 WHERE item = $1", item);
//     with.exec("INSERT INTO orders VALUES ($1, $2)", user, item);
//   });
//
// A fiber that is stopped, or whose deadline passes, leaves its statement at once. A fiber of the pool then cancels it
// in the server, takes the rest of its answer, rolls back, and gives the connection back. Until then the connection
// counts, so the server never has more than `size` of them.
//
// The library itself does not need libpq; a program that includes this header links it (14 or newer). The
// certificates, .pgpass and Kerberos tickets that libpq reads while it connects are files, which may block shortly.

#include <ulexite/base/error.hpp>
#include <ulexite/interop/postgres_connection.hpp>
#include <ulexite/interop/postgres_values.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite::postgres {

// How a pool works.
struct pool_options {
  std::size_t size = 10;  // the most connections
  // How long a caller that has its turn tries to connect, over all attempts, until it gets connection_lost.
  std::chrono::nanoseconds connect_time = std::chrono::seconds(5);
  // How long the pool tries to save the connection of a statement that was given up. Then it closes the connection, and
  // the server may go on with the statement for a while. The end of the pool takes at most this time.
  std::chrono::nanoseconds mend_time = std::chrono::seconds(5);
  bool prepare = true;  // false: prepared() works as exec(), for a pooler that shares connections by transaction
};

// How pool::transaction works.
struct transaction_options {
  std::string begin = "BEGIN";  // the statement that begins it, such as "BEGIN ISOLATION LEVEL SERIALIZABLE"
  int attempts = 10;            // in all, if it cannot be serialized or is the victim of a deadlock; 1: no repetition
};

// What a pool has done.
struct pool_metrics {
  std::uint64_t connects = 0;          // connections made
  std::uint64_t connect_failures = 0;  // attempts that failed
  std::uint64_t cancels = 0;           // requests to the server to cancel a statement
  std::uint64_t mended = 0;            // connections that were given up in a statement or transaction, and saved
  std::uint64_t dropped = 0;           // connections closed, because they were broken or could not be saved
};

// Connections that fibers share. It connects when a connection is needed first, and again when one is lost. Any number
// of fibers may use it; a plain thread may too, but a statement that it gives up costs its connection. Its users must
// have ended before it does; the fibers of the pool end with it, which takes at most mend_time.
class pool {
 public:
  // Does not connect yet. Throws std::invalid_argument for a bad `conninfo` (see connection), usage_error for a size of
  // 0.
  explicit pool(std::string conninfo, pool_options options = {})
      : conninfo_(std::move(conninfo)), options_(options), room_(static_cast<std::ptrdiff_t>(options.size)) {
    detail::parse_conninfo(conninfo_);
    if (options_.size == 0) throw usage_error("ulexite::postgres: a pool of size 0");
    idle_.reserve(options_.size);
  }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // A connection that is the caller's until the end of the lease. An open transaction is rolled back then.
  class lease {
   public:
    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (mine_) from_.take_back(std::move(permit_), std::move(mine_));
    }
    // The connection.
    connection* operator->() const noexcept { return mine_.get(); }
    connection& operator*() const noexcept { return *mine_; }

   private:
    friend pool;
    explicit lease(pool& from) : from_(from), permit_(from.room_), mine_(from.take()) {}

    pool& from_;
    semaphore_permit<PTRDIFF_MAX> permit_;
    std::unique_ptr<connection> mine_;  // destroyed before the permit
  };
  // Waits until a connection is free, in the order of the calls, or connects. A cancellation point. Throws
  // connection_lost, not sent, if the server has not been there for connect_time; sql_error if it refuses connections
  // for good.
  [[nodiscard]] lease acquire() { return lease(*this); }

  // A statement on any connection: as connection::exec, with the errors of acquire.
  template <class... P>
  result exec(const std::string& sql, const P&... values) {
    return acquire()->exec(sql, values...);
  }
  // The same as connection::prepared.
  template <class... P>
  result prepared(const std::string& sql, const P&... values) {
    return acquire()->prepared(sql, values...);
  }
  // The same as connection::run.
  std::vector<result> run(const batch& all) { return acquire()->run(all); }

  // Executes BEGIN, body(connection&) and COMMIT; returns what `body` returns. Any exception rolls back. Repeats all
  // after a serialization failure or a deadlock (40001, 40P01), up to the options' attempts, with a growing pause; so
  // `body` must have no other effect. If `body` caught the error of a statement, the transaction has failed; COMMIT
  // then rolls back, which throws sql_error 25P02. A connection_lost is `sent` only if COMMIT was. If the caller is
  // stopped in COMMIT, the outcome is unknown. Throws usage_error for less than one attempt.
  template <class Body>
  std::invoke_result_t<Body&, connection&> transaction(Body&& body, const transaction_options& options = {}) {
    if (options.attempts < 1)
      throw usage_error("ulexite::postgres: a transaction of " + std::to_string(options.attempts) + " attempts");
    for (int attempt = 1;; ++attempt) {
      try {
        return attempt_transaction(body, options.begin);
      } catch (const sql_error& error) {
        if (!error.may_succeed_later() || attempt == options.attempts) throw;
      }
      // The time now is as good as random.
      this_fiber::sleep_for(steady_clock::now().time_since_epoch() % (attempt * std::chrono::milliseconds(4)));
    }
  }

  // What the pool has done so far. Never waits.
  [[nodiscard]] pool_metrics metrics() const {
    const std::lock_guard lock(guard_);
    return counts_;
  }

 private:
  using permit = semaphore_permit<PTRDIFF_MAX>;

  void count(std::uint64_t pool_metrics::* what) noexcept {
    const std::lock_guard lock(guard_);
    ++(counts_.*what);
  }

  // For an owner of a permit, so there are fewer connections than `size` if none is idle.
  std::unique_ptr<connection> take() {
    for (;;) {
      std::unique_ptr<connection> last;
      {
        const std::lock_guard lock(guard_);
        if (idle_.empty()) break;
        last = std::move(idle_.back());
        idle_.pop_back();
      }
      if (last->is_quiet()) return last;
      count(&pool_metrics::dropped);
    }
    return connect();
  }
  std::unique_ptr<connection> connect() {
    std::string why = "the server does not answer";
    auto made = try_for(options_.connect_time, [&] {
      for (auto pause = std::chrono::milliseconds(20);; pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
        try {
          auto fresh = std::make_unique<connection>(conninfo_, connection_options{.prepare = options_.prepare});
          count(&pool_metrics::connects);
          return fresh;
        } catch (const connection_lost& error) {
          why = error.what();
          count(&pool_metrics::connect_failures);
        }
        this_fiber::sleep_for(pause);
      }
    });
    if (!made) throw connection_lost("ulexite::postgres: no connection in time: " + why, false);
    return std::move(*made);
  }

  template <class Body>
  std::invoke_result_t<Body&, connection&> attempt_transaction(Body& body, const std::string& begin) {
    const lease with = acquire();
    bool committing = false;
    const auto commit = [&] {
      committing = true;
      const result done = with->exec("COMMIT");
      if (std::string_view(PQcmdStatus(done.native_handle())) != "COMMIT")
        throw sql_error("25P02", "ulexite::postgres: a statement had failed, so COMMIT has rolled back");
    };
    try {
      with->exec(begin);
      if constexpr (std::is_void_v<std::invoke_result_t<Body&, connection&>>) {
        body(*with);
        commit();
      } else {
        static_assert(!std::is_reference_v<std::invoke_result_t<Body&, connection&>>,
                      "the body of a transaction returns a value: what it refers to may be gone");
        auto value = body(*with);
        commit();
        return value;
      }
    } catch (const operation_cancelled&) {
      throw;  // the fiber leaves at once, and the pool rolls back
    } catch (const connection_lost& error) {
      if (!committing && with->is_lost()) throw connection_lost(error.what(), false);
      throw;
    } catch (...) {
      roll_back(*with);
      throw;
    }
  }
  // So that the transaction is over when its caller gets the error. If it cannot be, the pool mends the connection.
  static void roll_back(connection& with) noexcept try {
    if (!with.is_lost() && !with.busy_ && with.in_transaction()) with.exec("ROLLBACK");
  } catch (...) {
  }

  void take_back(permit room, std::unique_ptr<connection> given) noexcept {
    if (!given->is_lost() && !given->needs_mending()) return keep(std::move(given));
    if (!given->is_lost()) {
      try {
        const shield without_deadline;  // which the fiber would inherit
        menders_.spawn(
            [this, held = std::move(room), broken = std::move(given)]() mutable { mend(std::move(broken)); });
        return;
      } catch (...) {  // there is no room for a fiber
      }
    }
    given.reset();
    count(&pool_metrics::dropped);
  }
  void keep(std::unique_ptr<connection> good) noexcept {
    const std::lock_guard lock(guard_);
    idle_.push_back(std::move(good));  // has room for all
  }
  void mend(std::unique_ptr<connection> broken) noexcept try {
    const shield until_done;
    timeout(options_.mend_time, [&] { broken->mend([this] { count(&pool_metrics::cancels); }); });
    keep(std::move(broken));
    count(&pool_metrics::mended);
  } catch (...) {
    broken.reset();
    count(&pool_metrics::dropped);
  }

  const std::string conninfo_;
  const pool_options options_;
  counting_semaphore<> room_;  // a permit for each connection in use
  mutable mutex guard_;        // guards the next two
  std::vector<std::unique_ptr<connection>> idle_;
  pool_metrics counts_;
  task_group menders_{on_error::keep_going};  // ends first
};

// What a listener has to tell.
struct notification {
  // The server keeps no notifications, so some may be missing before `connected`: read the tables again. A later
  // version may add kinds.
  enum class kind {
    message,    // a notification of NOTIFY
    connected,  // the listener has connected, for the first time or again
  };
  kind what = kind::message;  // happened
  std::string channel{};      // of a message, as in NOTIFY
  std::string payload{};      // its text, or empty
  int sender = 0;             // the process of the server that has sent it
};

// How a listener works.
struct listener_options {
  std::chrono::nanoseconds connect_time = std::chrono::seconds(5);  // for an attempt to connect
  std::chrono::nanoseconds check_time = std::chrono::seconds(30);   // after such a silence it asks whether the server
                                                                    // is there, and waits connect_time for an answer
};

// Listens for NOTIFY on a connection of its own, and connects again whenever that ends. One fiber at a time may use it.
class listener {
 public:
  // Does not connect yet. The channels are names, quoted by the listener. Throws std::invalid_argument for a bad
  // `conninfo`.
  listener(std::string conninfo, std::vector<std::string> channels, listener_options options = {})
      : conninfo_(std::move(conninfo)), channels_(std::move(channels)), options_(options) {
    detail::parse_conninfo(conninfo_);
  }

  // Waits for a message, or until the listener has connected, and returns it. While the server is away it tries again.
  // A cancellation point: when it throws, nothing is lost, and next() may be called again. Throws sql_error if the
  // server refuses the connection for good, or a channel.
  notification next() {
    if (on_ && on_->busy_) on_.reset();  // a check was cut off
    for (auto pause = std::chrono::milliseconds(20);; pause = std::min(pause * 2, std::chrono::milliseconds(1000))) {
      try {
        if (on_) {
          if (auto heard = hear()) return std::move(*heard);
        } else if (try_for(options_.connect_time, [this] { connect(); })) {
          return {.what = notification::kind::connected};
        }
      } catch (const connection_lost&) {
      }
      on_.reset();
      this_fiber::sleep_for(pause);
    }
  }

 private:
  // nullopt: the connection has ended.
  std::optional<notification> hear() {
    for (;;) {
      if (PGnotify* const got = PQnotifies(on_->get())) {
        const std::unique_ptr<PGnotify, detail::free_with<PQfreemem>> owner(got);
        return notification{notification::kind::message, got->relname, got->extra, got->be_pid};
      }
      if (net::wait_fd(PQsocket(on_->get()), net::interest::read, options_.check_time) != net::interest::none) {
        if (!PQconsumeInput(on_->get())) return std::nullopt;
      } else if (!try_for(options_.connect_time, [this] { on_->exec("SELECT 1"); })) {
        return std::nullopt;
      }
    }
  }
  void connect() {
    auto fresh = std::make_unique<connection>(conninfo_);
    for (const auto& each : channels_) {
      const std::unique_ptr<char, detail::free_with<PQfreemem>> quoted(
          PQescapeIdentifier(fresh->get(), each.data(), each.size()));
      if (!quoted) fresh->lost(false);
      fresh->exec(std::string("LISTEN ") + quoted.get());
    }
    on_ = std::move(fresh);
  }

  const std::string conninfo_;
  const std::vector<std::string> channels_;
  const listener_options options_;
  std::unique_ptr<connection> on_;
};

}  // namespace ulexite::postgres
