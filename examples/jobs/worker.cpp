#include "worker.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace jobs {

namespace ux = ulexite;
using namespace std::chrono_literals;

namespace {

// Takes permits that it gives back at the end, except those that jobs keep.
struct permits {
  ux::counting_semaphore<>& of;
  std::ptrdiff_t count;
  ~permits() {
    if (count > 0) of.release(count);
  }
};

void tell(const std::exception& why) { std::fprintf(stderr, "jobs: %s\n", why.what()); }

template <class F>
void repeat_every(std::chrono::milliseconds pause, F&& function) {
  for (;;) {
    ux::this_fiber::sleep_for(pause);
    try {
      function();
    } catch (const ux::operation_cancelled&) {
      throw;
    } catch (const std::exception& why) {
      tell(why);
    }
  }
}

// For the end of a job: what redis refuses, for example because its disk is full, is tried again, because the job is
// done and must not be done once more for it.
template <class F>
auto insist(F&& function) {
  for (;;) {
    try {
      return function();
    } catch (const redis::server_error& why) {
      tell(why);
    }
    ux::this_fiber::sleep_for(500ms);
  }
}

}  // namespace

// Its entry is under way, and holds a permit, until the end.
class worker::place {
 public:
  place(worker& at, std::string entry) : at_(at), entry_(std::move(entry)) {}
  place(place&& other) noexcept : at_(other.at_), entry_(std::exchange(other.entry_, {})) {}
  place& operator=(place&&) = delete;
  ~place() {
    if (entry_.empty()) return;
    {
      const std::lock_guard lock(at_.guard_);
      at_.under_way_.erase(entry_);
    }
    --at_.counts_.in_flight;
    at_.room_.release();
  }

 private:
  worker& at_;
  std::string entry_;
};

worker::worker(queue& from, ledger* book, worker_options options)
    : queue_(from), ledger_(book), options_(options), room_(options.concurrency) {}

void worker::start() {
  if (ledger_) ledger_->make_tables();
  queue_.make_group();
}

bool worker::run(const std::function<void()>& await_stop) {
  ux::task_group handlers(ux::on_error::keep_going), helpers(ux::on_error::keep_going);
  handlers_ = &handlers;
  working_ = true;
  helpers.spawn([&] { repeat_every(queue_.options().silence / 3, [&] { queue_.tell(under_way(), 0ms); }); });
  helpers.spawn([&] { repeat_every(1s, [&] { queue_.forget_consumers(); }); });
  helpers.spawn([&] { repeat_every(100ms, [&] { queue_.move_due(); }); });
  if (ledger_) helpers.spawn([&] { repeat_every(1s, [&] { ledger_->purge(queue_.options().keep); }); });
  auto reader = helpers.spawn([&] { read(); });
  await_stop();
  working_ = false;
  const auto end = ux::steady_clock::now() + options_.grace;
  const bool reader_ended = reader.wait_until(end);
  auto unfinished = under_way();  // those that end meanwhile do not count below
  if (!reader_ended) {            // redis is away, or a job that runs alone takes its time
    reader.request_stop();
    handlers.request_stop();
  }
  reader.join();
  if (ux::try_for(end, [&] { handlers.wait(); }) && reader_ended) unfinished.clear();
  helpers.request_stop();  // no further signs of life
  helpers.wait();
  return leave(unfinished);
}

// Gives the entries back, so that others need not wait for the silence.
bool worker::leave(const std::vector<std::string>& unfinished) {
  try {
    const ux::deadline_scope patience(5s);
    counts_.given_back += queue_.tell(unfinished, queue_.options().silence);
    return queue_.leave();
  } catch (const ux::deadline_exceeded&) {
    ux::this_fiber::check();
    std::fprintf(stderr, "jobs: redis does not answer, so the consumer stays\n");
  } catch (const redis::server_error& why) {
    tell(why);
  }
  return false;
}

// One fiber, because a reader that takes all the room would starve the claims.
void worker::read() {
  auto claim_at = ux::steady_clock::now();
  while (working_) {
    try {
      if (!suspect_.empty()) run_alone();
      if (!room_.try_acquire_for(200ms)) continue;
      permits free{room_, 1};
      while (free.count < 64 && room_.try_acquire()) ++free.count;
      if (ux::steady_clock::now() >= claim_at) {
        if (!claim(free.count)) claim_at = ux::steady_clock::now() + std::min(queue_.options().silence / 4, 500ms);
        continue;
      }
      for (job& each : queue_.read(free.count)) {
        --free.count;
        begin(std::move(each));
      }
    } catch (const ux::operation_cancelled&) {
      throw;
    } catch (const std::exception& why) {
      tell(why);
      ux::this_fiber::sleep_for(500ms);
    }
  }
}

// Each claim counts as a delivery, and a job that kills its process takes its neighbours along. So an entry runs alone
// after its third delivery, and only the guilty one can reach the limit.
bool worker::claim(std::ptrdiff_t& room) {
  std::vector<std::string> some;
  for (const auto& [id, deliveries] : queue_.silent()) {
    if (deliveries >= most_attempts) {
      for (const job& each : queue_.claim({id}))
        give_up(each, "its worker died " + std::to_string(deliveries) + " times");
    } else if (deliveries >= 3) {
      if (suspect_.empty()) suspect_ = id;
    } else if (std::ssize(some) < room) {
      some.push_back(id);
    }
  }
  if (some.empty()) return false;
  std::vector<job> got = queue_.claim(some);
  for (job& each : got) {
    ++counts_.claimed;
    --room;
    begin(std::move(each));
  }
  return !got.empty();
}

// Waits until the jobs under way have ended, or another worker takes the entry.
void worker::run_alone() {
  const std::string entry = std::exchange(suspect_, {});
  const auto still_silent = [&] {
    const auto all = queue_.silent();
    return std::any_of(all.begin(), all.end(), [&](const silent_entry& each) { return each.id == entry; });
  };
  while (!room_.try_acquire_for(500ms, options_.concurrency))
    if (!working_ || !still_silent()) return;
  permits all{room_, options_.concurrency};
  for (job& each : queue_.claim({entry})) {
    ++counts_.claimed;
    --all.count;
    if (auto alone = begin(std::move(each)); alone.joinable()) alone.join();
  }
}

// The job owns a permit of room_.
ux::join_handle<> worker::begin(job what) {
  {
    const std::lock_guard lock(guard_);
    if (!under_way_.insert(what.entry).second) {  // claimed from itself, because the sign of life was late
      room_.release();
      return {};
    }
  }
  ++counts_.in_flight;
  return handlers_->spawn([this, mine = place(*this, what.entry), what] { handle(what); });
}

void worker::handle(const job& what) {
  long times = 0;
  try {
    work(what);
    if (ledger_) times = ledger_->count(what);
  } catch (const ux::operation_cancelled&) {
    throw;
  } catch (const std::exception& why) {
    ++counts_.failed;
    if (what.attempt >= most_attempts) return give_up(what, why.what());
    return insist([&] { queue_.later(what, 100ms * (1L << std::min(what.attempt, 6L))); });
  }
  insist([&] {
    if (ledger_)
      queue_.done(what);
    else
      times = queue_.count_and_done(what);
  });
  ++(times == 1 ? counts_.done : counts_.repeated);
}

void worker::work(const job& what) {
  ux::this_fiber::sleep_for(std::chrono::milliseconds(what.milliseconds));
  if (what.kind == "fail") throw std::runtime_error("it always fails");
  if (what.kind == "flaky" && what.attempt < 3) throw std::runtime_error("it fails twice");
  if (what.kind == "crash") ::kill(::getpid(), SIGKILL);
}

void worker::give_up(const job& what, const std::string& why) {
  insist([&] { queue_.dead(what, why); });
  ++counts_.dead;
}

std::vector<std::string> worker::under_way() {
  const std::lock_guard lock(guard_);
  return {under_way_.begin(), under_way_.end()};
}

void write_metrics(std::ostream& out, const queue_state& now, const counters& counts) {
  const auto write = [&out](const char* name, const char* type, auto value) {
    out << "# TYPE jobs_" << name << " " << type << "\njobs_" << name << " " << value << "\n";
  };
  write("length", "gauge", now.length);
  if (now.lag) write("lag", "gauge", *now.lag);
  write("pending", "gauge", now.pending);
  write("later", "gauge", now.later);
  write("dead_letters", "gauge", now.dead);
  write("oldest_idle_seconds", "gauge", std::chrono::duration<double>(now.oldest_idle).count());
  write("in_flight", "gauge", counts.in_flight.load());
  write("done_total", "counter", counts.done.load());
  write("repeated_total", "counter", counts.repeated.load());
  write("failed_total", "counter", counts.failed.load());
  write("dead_total", "counter", counts.dead.load());
  write("claimed_total", "counter", counts.claimed.load());
  write("given_back_total", "counter", counts.given_back.load());
}

}  // namespace jobs
