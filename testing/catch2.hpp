#pragma once

// Include this header in one file of a test program. Then a failed assertion of Catch2 (version 2) fails its run: CHECK
// and REQUIRE in the explored function, and in its fibers. As usual, REQUIRE leaves by an exception. Catch2 itself
// counts only what the exploration throws.

#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/failure_source.hpp>

#if !__has_include(<catch2/catch.hpp>)
#error "ulexite/testing/catch2.hpp needs Catch2 version 2. With another version use ulexite::testing::expect in runs."
#endif
#include <catch2/catch.hpp>

#include <sstream>
#include <string>
#include <utility>

namespace ulexite::testing::detail {

// Takes the place of Catch2's receiver of results during a run, and hands on all but failures.
class catch2_failures final : public ulexite::detail::failure_source, public Catch::IResultCapture {
 public:
  catch2_failures() noexcept { install(this); }
  void begin() override {
    real_ = Catch::getCurrentContext().getResultCapture();
    Catch::getCurrentMutableContext().setResultCapture(this);
  }
  std::string end() override {
    Catch::getCurrentMutableContext().setResultCapture(real_);
    return {};  // fail() has got them
  }

  void handleExpr(const Catch::AssertionInfo& info, const Catch::ITransientExpression& expression,
                  Catch::AssertionReaction& reaction) override {
    if (expression.getResult() != Catch::isFalseTest(info.resultDisposition)) return assertionPassed();
    std::ostringstream values;
    expression.streamReconstructedExpression(values);
    take(info, values.str(), reaction);
  }
  void handleMessage(const Catch::AssertionInfo& info, Catch::ResultWas::OfType type, const Catch::StringRef& message,
                     Catch::AssertionReaction& reaction) override {
    take(info, type, std::string(message), reaction);
  }
  void handleNonExpr(const Catch::AssertionInfo& info, Catch::ResultWas::OfType type,
                     Catch::AssertionReaction& reaction) override {
    take(info, type, {}, reaction);
  }
  void handleUnexpectedExceptionNotThrown(const Catch::AssertionInfo& info,
                                          Catch::AssertionReaction& reaction) override {
    take(info, "no exception", reaction);
  }
  void handleUnexpectedInflightException(const Catch::AssertionInfo& info, const std::string& message,
                                         Catch::AssertionReaction& reaction) override {
    take(info, "exception: " + message, reaction);
  }
  void handleIncomplete(const Catch::AssertionInfo& info) override {
    Catch::AssertionReaction none;
    take(info, "an exception", none);
  }
  bool lastAssertionPassed() override { return last_passed_; }
  void assertionPassed() override {
    last_passed_ = true;
    real_->assertionPassed();
  }

  bool sectionStarted(const Catch::SectionInfo& info, Catch::Counts& counts) override {
    return real_->sectionStarted(info, counts);
  }
  void sectionEnded(const Catch::SectionEndInfo& info) override { real_->sectionEnded(info); }
  void sectionEndedEarly(const Catch::SectionEndInfo& info) override { real_->sectionEndedEarly(info); }
  auto acquireGeneratorTracker(Catch::StringRef name, const Catch::SourceLineInfo& line)
      -> Catch::IGeneratorTracker& override {
    return real_->acquireGeneratorTracker(name, line);
  }
#if defined(CATCH_CONFIG_ENABLE_BENCHMARKING)
  void benchmarkPreparing(const std::string& name) override { real_->benchmarkPreparing(name); }
  void benchmarkStarting(const Catch::BenchmarkInfo& info) override { real_->benchmarkStarting(info); }
  void benchmarkEnded(const Catch::BenchmarkStats<>& stats) override { real_->benchmarkEnded(stats); }
  void benchmarkFailed(const std::string& error) override { real_->benchmarkFailed(error); }
#endif
  void pushScopedMessage(const Catch::MessageInfo& message) override { real_->pushScopedMessage(message); }
  void popScopedMessage(const Catch::MessageInfo& message) override { real_->popScopedMessage(message); }
  void emplaceUnscopedMessage(const Catch::MessageBuilder& builder) override { real_->emplaceUnscopedMessage(builder); }
  void handleFatalErrorCondition(Catch::StringRef message) override { real_->handleFatalErrorCondition(message); }
  std::string getCurrentTestName() const override { return real_->getCurrentTestName(); }
  const Catch::AssertionResult* getLastResult() const override { return real_->getLastResult(); }
  void exceptionEarlyReported() override { real_->exceptionEarlyReported(); }

 private:
  void take(const Catch::AssertionInfo& info, Catch::ResultWas::OfType type, const std::string& what,
            Catch::AssertionReaction& reaction) {
    if (Catch::isOk(type)) return assertionPassed();
    take(info, what, reaction);
  }
  void take(const Catch::AssertionInfo& info, const std::string& what, Catch::AssertionReaction& reaction) {
    last_passed_ = Catch::shouldSuppressFailure(info.resultDisposition);
    if (last_passed_) return;
    fail(std::string(info.lineInfo.file) + ":" + std::to_string(info.lineInfo.line) + ": " +
         std::string(info.macroName) + "( " + std::string(info.capturedExpression) + " )" +
         (what.empty() ? "" : ": " + what));
    reaction.shouldThrow = (info.resultDisposition & Catch::ResultDisposition::Normal) != 0;
  }

  Catch::IResultCapture* real_ = nullptr;
  bool last_passed_ = true;
};

inline catch2_failures the_catch2_failures;

}  // namespace ulexite::testing::detail
