#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/task/unhandled.hpp>

#include <cstdio>
#include <string>

namespace ulexite::detail {
namespace {

std::string place_of(spawn_place where) {
  if (!where.known()) return "an unknown place";
  if (where.in_source()) return std::string(where.source().file_name()) + ':' + std::to_string(where.source().line());
  char text[32];
  std::snprintf(text, sizeof text, "code address %p", where.code());
  return text;
}

}  // namespace

void report_unhandled(const unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept {
  const char* const name = whose.name ? whose.name : "";
  if (handler) {
    handler(name, failure);
    return;
  }
  const auto report = [&](const char* what) {
    warn("unhandled exception in fiber #%llu '%s' (spawned at %s): %s", static_cast<unsigned long long>(whose.id), name,
         place_of(whose.where).c_str(), what);
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
