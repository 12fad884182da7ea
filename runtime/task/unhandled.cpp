#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/task/unhandled.hpp>

namespace ulexite::detail {

void report_unhandled(const unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept {
  const char* const name = whose.name ? whose.name : "";
  if (handler) {
    handler(name, failure);
    return;
  }
  const auto report = [&](const char* what) {
    warn("unhandled exception in fiber #%llu '%s' (spawned at %s:%u): %s", static_cast<unsigned long long>(whose.id),
         name, whose.where.file_name(), static_cast<unsigned>(whose.where.line()), what);
    std::terminate();
  };
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    report(e.what());
  } catch (...) {
    report("not a std::exception");
  }
}

}  // namespace ulexite::detail
