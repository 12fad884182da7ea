#pragma once

// Another source of failures of a run: the assertions of a test framework.

#include <ulexite/base/standard.hpp>

#include <string>

namespace ulexite::detail {

// Called before and after each run, on the run's thread. A process has one.
class failure_source {
 public:
  virtual void begin() = 0;
  // The failures since begin(); empty if there are none.
  virtual std::string end() = 0;
  // Whether the last run has skipped the test, so that no other run begins.
  [[nodiscard]] virtual bool skipped() const noexcept { return false; }

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

}  // namespace ulexite::detail
