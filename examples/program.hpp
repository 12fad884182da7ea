#pragma once

// The common part of the examples' mains: options, signals, the number of workers, and one line for an error.

#include "stop_signals.hpp"

#include <ulexite/runtime/options.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

namespace examples {

// Values that CLI11 takes for a number: "-1" for one without a sign, which would be the largest, and "nan" for one in a
// range.
inline const CLI::Validator not_negative(
    [](std::string& text) { return text.starts_with('-') ? text + " is negative" : std::string(); }, "NONNEGATIVE");
inline const CLI::Validator finite(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && !std::isfinite(value) ? text + " is no finite number"
                                                                             : std::string();
    },
    "");

// Reads the options that describe(app) adds, and --threads. Then returns run(signals, options), for a runtime with
// these options. An exception ends the program with status 1 and a line that begins with `name`. The signals are caught
// before any thread is started.
template <class Describe, class Run>
int run_program(int argc, char** argv, const char* name, const std::string& purpose, Describe&& describe,
                Run&& run) try {
  CLI::App app(purpose);
  ulexite::runtime_options options;
  describe(app);
  app.add_option("--threads", options.threads, "Most worker threads; 0: one for each CPU")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  stop_signals signals;
  return run(signals, options);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s: %s\n", name, failure.what());
  return 1;
}

}  // namespace examples
