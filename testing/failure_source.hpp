#pragma once

// What else can fail a run: the assertions of a test framework.

#include <ulexite/base/standard.hpp>

#include <string>

namespace ulexite::testing {

// Called before and after each run, on its thread. One for the process.
class failure_source {
 public:
  virtual void begin() = 0;
  // What has failed since; empty if nothing has.
  virtual std::string end() = 0;

  [[nodiscard]] static failure_source* installed() noexcept { return own(); }
  static void install(failure_source* source) noexcept { own() = source; }

 protected:
  ~failure_source() = default;

 private:
  static failure_source*& own() noexcept {
    static constinit failure_source* source = nullptr;
    return source;
  }
};

}  // namespace ulexite::testing
