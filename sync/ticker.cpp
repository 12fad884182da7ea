#include <ulexite/base/error.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/ticker.hpp>

#include <string>

namespace ulexite {

ticker::ticker(std::chrono::nanoseconds period) {
  if (period.count() <= 0) throw usage_error("ticker with a period of " + std::to_string(period.count()) + " ns");
  const shield no_deadline;  // ignores the caller's deadline: the ticker lives until it is stopped
  fiber_ = spawn({.name = "ticker"}, [this, period, next = relative_timeout(period).deadline()]() mutable {
    try {
      while (!ticks_.is_closed()) {
        detail::sleep_until(next);
        steady_clock::time_point now = steady_clock::now();
        (void)ticks_.try_send(now);
        next += ((now.time_since_epoch().count() - next) / period.count() + 1) * period.count();
      }
    } catch (const operation_cancelled&) {  // by stop(), or by the runtime's end
    }
    ticks_.close();
  });
}

ticker::~ticker() {
  stop();
  fiber_.join();
}

void ticker::stop() noexcept {
  ticks_.close();
  fiber_.request_stop();
}

}  // namespace ulexite
