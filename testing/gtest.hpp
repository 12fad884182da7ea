#pragma once

// Include this header in one file of a test program. Then a failed assertion of GoogleTest fails its run: EXPECT and
// ASSERT in the explored function, and in its fibers. As usual, ASSERT leaves only its own function. GTEST_SKIP skips
// the test after its run.

#include <ulexite/testing/failure_source.hpp>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace ulexite::testing::detail {

// Keeps the reports of the test framework, because most runs of an exploration do not interest the user.
class gtest_failures final : public ulexite::detail::failure_source {
 public:
  gtest_failures() noexcept { install(this); }
  void begin() override {
    results_.emplace();
    reporter_.emplace(::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &*results_);
  }
  std::string end() override {
    reporter_.reset();
    skipped_ = false;
    for (int i = 0; i < results_->size(); ++i) {
      const auto& part = results_->GetTestPartResult(i);
      if (part.skipped()) skip(part);
      if (part.failed())
        return std::string(part.file_name() ? part.file_name() : "?") + ":" + std::to_string(part.line_number()) +
               ": " + part.message();
    }
    return {};
  }
  [[nodiscard]] bool skipped() const noexcept override { return skipped_; }

 private:
  void skip(const ::testing::TestPartResult& part) {
    if (!std::exchange(skipped_, true))
      GTEST_MESSAGE_AT_(part.file_name(), part.line_number(), part.message(), ::testing::TestPartResult::kSkip);
  }

  bool skipped_ = false;
  std::optional<::testing::TestPartResultArray> results_;
  std::optional<::testing::ScopedFakeTestPartResultReporter> reporter_;
};

inline gtest_failures the_gtest_failures;

}  // namespace ulexite::testing::detail
