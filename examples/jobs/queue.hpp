#pragma once

// The queue in redis. Every change of several steps is one script, and can be repeated without harm.
//
//   jobs         a stream: an entry for each job that is to be done or under way; its length is the backlog
//   jobs:later   a sorted set: jobs that failed and wait for their next attempt, by time
//   jobs:dead    a stream: jobs that were given up
//
// and if the ledger is in redis
//
//   jobs:done:NAME  how often the job of that name was done; it goes by itself
//   jobs:totals     a hash with the sum of the effects
//
// The group "workers" has a consumer for each process.

#include <ulexite/interop/redis.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jobs {

namespace redis = ulexite::redis;

constexpr long most_attempts = 5;

struct queue_options {
  std::chrono::milliseconds silence{2000};   // without a sign of its worker; then another process may take an entry
  std::chrono::seconds keep{7 * 24 * 3600};  // a name in the ledger; longer than any repetition takes
};

struct job {
  std::string entry{};  // of the stream
  std::string name{};   // the key of the ledger
  long milliseconds = 0;
  std::string kind = "ok";
  long attempt = 1;
};

// An entry whose worker is silent, and how often it was delivered.
struct silent_entry {
  std::string id;
  long deliveries;
};

struct queue_state {
  long length = 0, pending = 0, later = 0, dead = 0;
  std::optional<long> lag{};  // entries that were not delivered yet
  std::chrono::milliseconds oldest_idle{0};
};

// The operations of one process. Any number of fibers may use it, except read(): one. All are cancellation points, and
// wait as long as redis is away; they throw redis::reply_error if redis refuses a command.
class queue {
 public:
  // Does not connect yet. `consumer` must differ from those of other processes. On stderr it tells when redis goes away
  // and when it is back.
  queue(ulexite::net::address at, std::string consumer, queue_options options);

  [[nodiscard]] const queue_options& options() const noexcept { return options_; }

  // Makes the stream and the group, if there are none.
  void make_group();
  // Adds a job. False: the backlog has reached the limit. When the connection ends in between, the job may be added
  // twice, which the ledger absorbs.
  bool add(const job& what, long most);
  // Waits half a second at most for new jobs. A read that is cut off would leave entries to this consumer.
  std::vector<job> read(std::ptrdiff_t most);

  // At most 64 entries whose worker is silent.
  std::vector<silent_entry> silent();
  // Takes those of the entries that are still silent.
  std::vector<job> claim(const std::vector<std::string>& ids);
  // With idle 0 it says that the entries are being worked on, with the silence that others may have them. Leaves out
  // those that another process has. Returns how many are this one's.
  long tell(const std::vector<std::string>& ids, std::chrono::milliseconds idle);

  // The ends of a job: its entry goes, if another process has not ended it yet.
  void done(const job& what);
  long count_and_done(const job& what);  // with the effect in redis; returns how often the job was done
  void later(const job& what, std::chrono::milliseconds wait);
  void dead(const job& what, std::string_view why);

  // Moves the jobs of jobs:later whose time has come.
  void move_due();
  // Removes consumers that are silent and have nothing pending.
  void forget_consumers();
  // Removes this consumer. False if entries are pending at it.
  bool leave();
  queue_state state();

  // The dead jobs, with the reason of each.
  std::vector<std::pair<job, std::string>> dead_jobs();
  // Puts a dead job back into the stream, as at its first attempt.
  void revive(const job& what);

 private:
  template <class... Words>
  redis::reply command(const Words&... words) {
    return redis::repeat([&] { return commands_.command(words...); });
  }
  redis::reply command(const std::vector<redis::argument>& words) {
    return redis::repeat([&] { return commands_.command(words); });
  }
  template <class... Words>
  redis::reply run(const redis::script& what, std::initializer_list<redis::argument> keys, const Words&... words) {
    return redis::repeat([&] { return what.run(commands_, keys, words...); });
  }

  const ulexite::net::address at_;
  const std::string consumer_;
  const queue_options options_;
  redis::pool commands_;
  std::optional<redis::connection> reading_;  // XREADGROUP holds its connection
};

}  // namespace jobs
