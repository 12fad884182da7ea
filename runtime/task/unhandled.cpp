// The end of an exception that no handle takes: the user's handler gets it, or the process ends.

#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/task/unhandled.hpp>

#include <cstdio>
#include <string>
#include <utility>

namespace ulexite::detail {
namespace {

// A spawn with arguments has no source position, only an address in the code (fiber/spawn_place.hpp).
std::string place_of(spawn_place where) {
  if (!where.known()) return "an unknown place";
  if (where.in_source()) return std::string(where.source().file_name()) + ':' + std::to_string(where.source().line());
  char text[32];
  std::snprintf(text, sizeof text, "code address %p", where.code());
  return text;
}

}  // namespace

std::string words_for_fiber(std::uint64_t id, std::string_view name) {
  std::string words = "fiber #" + std::to_string(id);
  if (!name.empty()) words.append(" '").append(name) += '\'';
  return words;
}

// Without a handler it ends as an exception that leaves a std::thread does: by std::terminate, but with the fiber's
// name and origin on stderr first.
void report_unhandled(const unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept {
  const char* const name = whose.name ? whose.name : "";
  // The user's handler decides; it may end the process.
  if (handler) {
    unhandled_exception what{.exception = std::move(failure), .fiber_name = name, .fiber_id = whose.id};
    if (whose.where.known() && whose.where.in_source()) {
      what.file = whose.where.source().file_name();
      what.line = whose.where.source().line();
    } else {
      what.code = whose.where.code();
    }
    handler(what);
    return;
  }
  // In the handler of the exception, so that std::terminate's own report names its type too.
  const auto report = [&](const char* what) {
    warn("unhandled exception in %s (spawned at %s): %s", words_for_fiber(whose.id, name).c_str(),
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
