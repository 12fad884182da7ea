#include "pool.hpp"

#include "gzip.hpp"

#include <ulexite/net/buffered.hpp>
#include <ulexite/os/standard_streams.hpp>

#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace ux = ulexite;

namespace {

// Writes a whole line. Its errors are ignored, because stderr may be closed.
void say(const std::string& line) {
  std::error_code ignored;
  ux::os::standard_error().write("worker_pool: " + line + "\n", ignored);
}

}  // namespace

pool_summary pool::run(examples::stop_signals& signals) {
  ux::task_group group;
  group.spawn([&] { read_names(); });
  for (std::size_t i = 0; i < given_.workers; ++i) group.spawn([&] { work(); });
  coordinate(group, signals.channel());
  group.request_stop();  // what waits to be tried again or to be read
  group.wait();
  return summary_;
}

void pool::read_names() {
  for (const std::string& path : given_.files) submitted_.send({path});
  if (given_.files.empty()) {
    ux::net::buffered_reader lines(ux::os::standard_input());
    while (const auto path = lines.read_line()) submitted_.send({std::string(*path)});
  }
  submitted_.close();
}

void pool::work() {
  for (job& mine : to_do_) {
    attempt(mine);
    done_.send(std::move(mine));
  }
}

// A job's failure is a result like any other; a cancellation is not, and ends the worker.
void pool::attempt(job& mine) const try {
  ++mine.attempts;
  mine.error.clear();
  say("begin " + mine.path);
  const auto name = std::filesystem::path(mine.path).filename().string() + ".gz";
  const gzip_result sizes = gzip_file(mine.path, given_.output + "/" + name);
  mine.read = sizes.read;
  mine.written = sizes.written;
} catch (const ux::operation_cancelled&) {
  throw;
} catch (const std::exception& failure) {
  mine.error = failure.what();
}

// At most one job waits here for a worker: until it has one, no other job is accepted.
void pool::coordinate(ux::task_group& group, ux::channel<int>& stops) {
  const auto has_work = [&] {
    if (phase_ == phase::running) return under_way_ > 0 || waiting_for_retry_ > 0 || has_next_ || more_;
    return phase_ == phase::draining && under_way_ > 0;
  };
  while (has_work()) {
    const bool running = phase_ == phase::running;
    ux::select(ux::in_order,
               // When a child has failed, the group has stopped, and nothing else would arrive: wait() throws its
               // failure.
               ux::on_stop(group.get_stop_token(), [&] { group.wait(); }),
               ux::on_receive(stops, [&](std::optional<int> signal) { stop(*signal); }),
               ux::on_receive(done_, [&](std::optional<job> ended) { finish(group, std::move(*ended)); }),
               ux::when(running && has_next_, ux::on_send(to_do_, next_,
                                                          [&] {
                                                            has_next_ = false;
                                                            ++under_way_;
                                                          })),
               ux::when(running && !has_next_, ux::on_receive(again_,
                                                              [&](std::optional<job> due) {
                                                                --waiting_for_retry_;
                                                                accept(std::move(due));
                                                              })),
               ux::when(running && !has_next_ && more_, ux::on_receive(submitted_, [&](std::optional<job> fresh) {
                          more_ = fresh.has_value();
                          accepted_ += more_;
                          accept(std::move(fresh));
                        })));
  }
  count_what_is_left();
}

void pool::accept(std::optional<job> came) {
  has_next_ = came.has_value();
  if (came) next_ = std::move(*came);
}

void pool::finish(ux::task_group& group, job ended) {
  --under_way_;
  if (ended.error.empty()) {
    ++summary_.done;
    summary_.read += ended.read;
    summary_.written += ended.written;
    return;
  }
  say("attempt " + std::to_string(ended.attempts) + " of " + std::to_string(given_.attempts) +
      " failed: " + ended.error);
  if (ended.attempts == given_.attempts || phase_ != phase::running) {
    ++summary_.failed;
    return;
  }
  ++summary_.retries;
  ++waiting_for_retry_;
  group.spawn([this, ended = std::move(ended)]() mutable {
    ux::this_fiber::sleep_for(given_.retry_delay);
    again_.send(std::move(ended));
  });
}

void pool::stop(int signal) {
  phase_ = phase_ == phase::running ? phase::draining : phase::cancelled;
  say(std::string(examples::name_of(signal)) +
      (phase_ == phase::draining ? ": finishing what was begun" : ": cancelling"));
}

// After a stop. A job that waits for another attempt has failed before.
void pool::count_what_is_left() {
  const auto not_begun = [&](const std::string& path) {
    ++summary_.not_begun;
    say("not begun: " + path);
  };
  summary_.cancelled = under_way_;
  summary_.failed += waiting_for_retry_;
  if (has_next_ && next_.attempts > 0) ++summary_.failed;
  if (has_next_ && next_.attempts == 0) not_begun(next_.path);
  for (std::size_t i = accepted_; i < given_.files.size(); ++i) not_begun(given_.files[i]);
}
