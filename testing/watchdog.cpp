#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/testing/watchdog.hpp>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <unistd.h>

namespace ulexite::testing {

watchdog::watchdog(driver& of, detail::runtime_state& rt, std::chrono::milliseconds limit)
    : driver_(of),
      runtime_(rt),
      limit_(std::min<std::chrono::milliseconds>(limit, std::chrono::hours(24 * 365))),
      watched_(::gettid()),
      thread_([this] { watch(); }) {}

watchdog::~watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void watchdog::watch() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0, told = 0;
  while (!wake_.wait_for(lock, limit_, [this] { return over_; })) {
    const std::uint64_t now = driver_.ticks();
    if (now == seen && now != told) {
      told = now;
      tell();
    }
    seen = now;
  }
}

// If the run continues after all, it waits for the guard at its next choice.
void watchdog::tell() const {
  const std::lock_guard lock(driver_.guard());
  if (!driver_.in_run()) return;
  std::ostringstream text;
  text << "ulexite: a run of ulexite::testing has made no step for "
       << detail::describe_time(static_cast<std::uint32_t>(limit_.count())) << '\n';
  detail::write_frames(text, detail::frames_of(watched_));
  {
    const controlled_thread in_its_time(driver_);
    detail::write_fibers(text, detail::collect(runtime_, {}));
  }
  text << "to repeat it: ULEXITE_SCHEDULE=" << to_string(driver_.choices()) << '\n';
  std::fputs(std::move(text).str().c_str(), stderr);
}

}  // namespace ulexite::testing
