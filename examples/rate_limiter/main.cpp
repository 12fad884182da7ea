// Passes lines on, with a limit per second, from any number of inputs alternately.
//
//   rate_limiter --rate 10 <requests.txt
//   rate_limiter --rate 100 --burst 20 --max-wait 500 a.log b.log
//
// All inputs share one token bucket. The input that has waited longest gets the next token. With --max-wait a line that
// would have to wait longer than that is dropped, and counted. SIGINT and SIGTERM end it.

#include "../program.hpp"
#include "token_bucket.hpp"

#include <ulexite.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

namespace {

namespace ux = ulexite;

struct arguments {
  std::vector<std::string> files;
  double rate = 0;
  std::size_t burst = 1;
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
};

class limiter {
 public:
  explicit limiter(const arguments& given) : given_(given), bucket_(given.rate, given.burst) {
    for (const std::string& path : given.files) files_.emplace_back(path);
  }

  // Until all inputs have ended.
  void run() {
    const auto pass_all = [&] {
      ux::scope([&](ux::task_group& group) {
        for (ux::os::input_stream& each : files_) group.spawn([&] { pass_lines(each); });
        if (files_.empty()) group.spawn([&] { pass_lines(ux::os::standard_input()); });
      });
    };
    ux::when_any(pass_all, [&] { bucket_.fill(); });
  }

  void report(const char* why) const {
    std::fprintf(stderr, "rate_limiter: %s: %ju lines passed, %ju dropped\n", why, passed_, dropped_);
  }

 private:
  void pass_lines(ux::os::input_stream& from) {
    ux::net::buffered_reader lines(from);
    while (const auto line = lines.read_line()) {
      const bool pass = bucket_.take(given_.patience);
      const std::lock_guard lock(mutex_);
      if (pass) ux::os::standard_output().write(std::string(*line) + '\n');
      ++(pass ? passed_ : dropped_);
    }
  }

  const arguments& given_;
  token_bucket bucket_;
  std::deque<ux::os::input_stream> files_;  // none: standard input
  ux::mutex mutex_;                         // guards all below
  std::uintmax_t passed_ = 0, dropped_ = 0;
};

int run(const arguments& given, examples::stop_signals& signals) {
  limiter lines(given);
  const auto first = ux::when_any([&] { lines.run(); }, [&] { return signals.wait(); });
  const int signal = first.index == 1 ? std::get<1>(first.value) : 0;
  lines.report(signal ? examples::name_of(signal) : "done");
  return signal ? 128 + signal : 0;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("FILE", given.files, "Where the lines come from; none: standard input");
    app.add_option("--rate", given.rate, "Lines a second")
        ->required()
        ->check(examples::finite)
        ->check(CLI::Range(1e-6, 1e6));
    app.add_option("--burst", given.burst, "Lines that may pass at once after a pause")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option_function<unsigned>(
        "--max-wait", [&](unsigned milliseconds) { given.patience = std::chrono::milliseconds(milliseconds); },
        "Milliseconds that a line waits before it is dropped; without it none is");
  };
  return examples::run_program(argc, argv, "rate_limiter",
                               "Passes lines on to standard output, at most so many a second.", describe,
                               [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 return ux::runtime(options).run(run, std::cref(given), std::ref(signals));
                               });
}
