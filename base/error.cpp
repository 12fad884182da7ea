#include <ulexite/base/error.hpp>

#include <string>

namespace ulexite {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "ulexite"; }

  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::cancelled: return "the operation was cancelled";
      case errc::deadline_exceeded: return "the deadline was exceeded";
      case errc::channel_closed: return "the channel is closed";
      case errc::no_runtime:
        return "no runtime: call this in a fiber, as inside ulexite::run, or the runtime's member function of that "
               "name";
      case errc::limit_reached: return "the limit on live fibers is reached";
      case errc::deadlock: return "every fiber waits and nothing can wake one";
    }
    return "unknown ulexite error " + std::to_string(code);
  }

  bool equivalent(int code, const std::error_condition& condition) const noexcept override {
    switch (static_cast<errc>(code)) {
      case errc::cancelled: return condition == std::errc::operation_canceled;
      case errc::deadline_exceeded: return condition == std::errc::timed_out;
      default: return default_error_condition(code) == condition;
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace ulexite
