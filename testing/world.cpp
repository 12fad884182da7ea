#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/testing/failure_source.hpp>
#include <ulexite/testing/world.hpp>

#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

namespace ulexite::detail {

struct runtime_of_runs {
  static runtime* make(runtime_options options) {
    return new runtime(std::make_unique<runtime_state>(std::move(options)));
  }
  static void end(runtime& ended) noexcept {
    ended.ended_.store(true, std::memory_order_relaxed);  // hint
    ended.state_->end_workers();
  }
};

}  // namespace ulexite::detail

namespace ulexite::testing {
namespace {

std::string words_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& e) {
    const bool refused = e.code() == std::errc::not_supported || e.code().value() == ESOCKTNOSUPPORT;
    return e.what() + std::string(refused
                                      ? " (a run of ulexite::testing has stream sockets only: it refuses datagrams, "
                                        "and waits for pipes, processes and other descriptors)"
                                      : "");
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// "1 fiber waits", "3 fibers wait".
std::string count(std::size_t fibers, const char* one, const char* many) {
  return std::to_string(fibers) + (fibers == 1 ? std::string(" fiber ") + one : std::string(" fibers ") + many);
}

}  // namespace

void world::begin() {
  if (runtime_) return;
  runtime_options options = options_.runtime;
  options.threads = 1;
  options.max_threads = 2;  // the second never starts, but with two workers ranges are split
  options.on_unhandled_exception = [this](const unhandled_exception& what) {
    driver_.fail("an exception that no fiber took: " + words_of(what.exception));
  };
  runtime_.reset(detail::runtime_of_runs::make(std::move(options)));
  rt().parker.expect_own_worker();
  if (options_.stuck_after.count() > 0) watchdog_.emplace(driver_, rt(), options_.stuck_after);
}

void world::end() noexcept {
  watchdog_.reset();
  if (runtime_) detail::runtime_of_runs::end(*runtime_);
  runtime_.reset();
}

outcome world::run(strategy& how, const std::function<void()>& body) {
  begin();
  driver_.begin(how);
  detail::failure_source* const also = detail::failure_source::installed();
  if (also) also->begin();
  outcome result;
  bool clean = false;
  {
    const controlled_thread here(driver_);
    auto& main = detail::make_task(rt(), [&] {
      try {
        body();
      } catch (...) {
        driver_.fail("an exception of the function: " + words_of(std::current_exception()));
      }
      driver_.body_returned();
    });
    main.detach_at_birth();
    detail::apply_options(main, {.name = "main"});
    rt().threads.ensure_worker();
    detail::publish(main);
    main.id = ++driver_.fibers;
    rt().schedulers.front()->run_controlled(driver_);
    driver_.end();
    if (also) {
      if (const std::string failed = also->end(); !failed.empty()) driver_.fail(failed);
    }
    judge();
    // A request to stop and a trace would outlast the run.
    clean = rt().live() == 0 && !rt().handle.named_in_run;
    result.reason = driver_.reason();
    if (!result.reason.empty()) result.fibers = describe_fibers();
  }
  if (!clean) end();
  return result;
}

void world::judge() {
  const std::size_t left = rt().live();
  if (driver_.over) {
    driver_.fail("no end after " + std::to_string(options_.max_steps) + " steps");
  } else if (left != 0 && !driver_.has_body_returned()) {
    driver_.fail("deadlock: " + count(left, "waits", "wait") + ", no fiber can run, and no timer is set");
  } else if (left != 0 && options_.leaks_fail) {
    driver_.fail("leak: the function has returned, and " + count(left, "still lives", "still live"));
  } else if (const std::size_t open = driver_.sockets().open_sockets(); open != 0 && options_.leaks_fail) {
    driver_.fail("leak: the function has returned, and sockets are open: " + std::to_string(open));
  }
}

std::string world::describe_fibers() {
  std::ostringstream text;
  detail::write_fibers(text, detail::collect(rt(), {}));
  return std::move(text).str();
}

}  // namespace ulexite::testing
