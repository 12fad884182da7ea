#include "pool.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

namespace redis_counter {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds first_pause = 20ms, longest_pause = 500ms;

// A permit that this fiber holds as long as the object exists.
struct permit {
  explicit permit(ulexite::binary_semaphore& from) : from(from) { from.acquire(); }
  permit(const permit&) = delete;
  permit& operator=(const permit&) = delete;
  ~permit() { from.release(); }
  ulexite::binary_semaphore& from;
};

}  // namespace

pool::pool(ulexite::net::endpoint redis, std::size_t size, std::chrono::nanoseconds patience)
    : redis_(redis), patience_(patience), free_(static_cast<std::ptrdiff_t>(size)) {}

pool::lease::lease(pool& from) : from_(from) {
  from.free_.acquire();
  try {
    connection_ = from.take();
  } catch (...) {
    from.free_.release();
    throw;
  }
}

pool::lease::~lease() {
  connection_.reset();
  from_.free_.release();
}

void pool::lease::hand_back() {
  const std::lock_guard lock(from_.guard_);
  from_.idle_.push_back(std::move(connection_));
}

std::unique_ptr<redis::connection> pool::take() {
  if (auto idle = take_idle()) return idle;
  const permit connecting(may_connect_);
  if (auto idle = take_idle()) return idle;
  return connect();
}

// The connection that was used last. A restarted redis has ended the idle ones, and a command would be lost on them.
std::unique_ptr<redis::connection> pool::take_idle() {
  for (;;) {
    std::unique_ptr<redis::connection> last;
    {
      const std::lock_guard lock(guard_);
      if (idle_.empty()) return nullptr;
      last = std::move(idle_.back());
      idle_.pop_back();
    }
    if (last->is_quiet()) return last;
  }
}

std::unique_ptr<redis::connection> pool::connect() {
  for (;;) {
    if (pause_ != 0ms) ulexite::this_fiber::sleep_until(next_attempt_);
    try {
      auto made = std::make_unique<redis::connection>(redis_, patience_);
      note_success();
      return made;
    } catch (const ulexite::operation_cancelled&) {
      throw;
    } catch (const std::system_error& error) {
      note_failure(error.what());
    }
  }
}

void pool::note_success() {
  if (pause_ != 0ms) spdlog::info("connected again redis={}", redis_.str());
  pause_ = 0ms;
  const std::lock_guard lock(guard_);
  ++connects_;
  failure_.clear();
}

void pool::note_failure(const char* why) {
  if (pause_ == 0ms) spdlog::warn("cannot connect redis={} error=\"{}\"", redis_.str(), why);
  pause_ = std::clamp(pause_ * 2, first_pause, longest_pause);
  next_attempt_ = clock::now() + pause_;
  const std::lock_guard lock(guard_);
  failure_ = why;
}

std::string pool::trouble() const {
  const std::lock_guard lock(guard_);
  return failure_.empty() ? "no connection to redis became free" : "redis cannot be reached: " + failure_;
}

std::uint64_t pool::connects() const {
  const std::lock_guard lock(guard_);
  return connects_;
}

}  // namespace redis_counter
