#pragma once

// Include this header in one file of a test program. Then a failed assertion of doctest fails its run: CHECK and
// REQUIRE in the explored function, and in its fibers. As usual, REQUIRE leaves by an exception. doctest counts each
// of these failures too, so where a test expects that find_failure finds one, use ulexite::testing::expect in the runs.

#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/failure_source.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace ulexite::testing::detail {

// What the listener has seen, of which a process has one.
class doctest_failures final : public ulexite::detail::failure_source {
 public:
  doctest_failures() noexcept { install(this); }
  // Silent, because most runs of an exploration do not interest the user.
  void begin() override {
    in_run_ = true;
    if (test_) was_silent_ = std::exchange(test_->m_no_output, true);
  }
  std::string end() override {
    in_run_ = false;
    if (test_) test_->m_no_output = was_silent_;
    return {};  // fail() has got them
  }
  // doctest keeps its tests in a set, whose order does not depend on the member that is changed.
  void enter(const doctest::TestCaseData& test) noexcept { test_ = const_cast<doctest::TestCaseData*>(&test); }
  void take(const char* file, int line, const std::string& what) const {
    if (in_run_) fail(std::string(file) + ":" + std::to_string(line) + ": " + what);
  }

 private:
  doctest::TestCaseData* test_ = nullptr;
  bool in_run_ = false, was_silent_ = false;
};

inline doctest_failures the_doctest_failures;

struct doctest_listener : doctest::IReporter {
  explicit doctest_listener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& test) override { the_doctest_failures.enter(test); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& done) override {
    if (!done.m_failed || (done.m_at & doctest::assertType::is_warn)) return;
    const doctest::String& values = done.m_threw ? done.m_exception : done.m_decomp;
    the_doctest_failures.take(
        done.m_file, done.m_line,
        std::string(doctest::assertString(done.m_at)) + "( " + done.m_expr + " ): " + values.c_str());
  }
  void log_message(const doctest::MessageData& said) override {
    if (!(said.m_severity & doctest::assertType::is_warn))
      the_doctest_failures.take(said.m_file, said.m_line, said.m_string.c_str());
  }
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("ulexite", 1, ulexite::testing::detail::doctest_listener);

}  // namespace ulexite::testing::detail
