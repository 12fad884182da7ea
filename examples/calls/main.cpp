// Counts words by worker processes: the word count of the tour, over streams of gRPC.
//
//   calls --workers 4 --top 10 DIRECTORY...          cat book.txt | calls
//
//                 +-> seat 1 <== a stream ==> worker process 1
//   read the text +-> seat 2 <== a stream ==> worker process 2
//                 +-> seat 3 <== a stream ==> worker process 3
//
// The coordinator starts this program again for each worker. A worker that ends or does not answer is replaced, and
// what it has not answered is sent again. Try it: kill -9 a worker whose number stands on stderr. The counts are the
// same. All waits are those of fibers: the coordinator has a few for each worker, and a worker has one for its stream.

#include "../program.hpp"
#include "seat.hpp"
#include "text_parts.hpp"
#include "worker.hpp"

#include <ulexite.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ux = ulexite;

struct arguments {
  std::vector<std::string> paths;
  unsigned workers = 3;
  std::size_t top = 10;
  std::chrono::milliseconds patience{10'000};
  bool worker = false;
};

void describe(CLI::App& app, arguments& given) {
  app.add_option("PATH", given.paths, "Files, and directories with all files below; none: standard input")
      ->check(CLI::ExistingPath);
  app.add_option("--workers", given.workers, "Worker processes")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--top", given.top, "How many of the most frequent words to print; 0: all")->capture_default_str();
  app.add_option_function<unsigned>(
         "--patience", [&](unsigned milliseconds) { given.patience = std::chrono::milliseconds(milliseconds); },
         "Milliseconds without an answer after which a worker is replaced [10000]")
      ->check(CLI::Range(1, 3'600'000));
  app.add_flag("--worker", given.worker, "Be a worker, as which the coordinator starts this program");
}

class word_count {
 public:
  explicit word_count(const arguments& given) : given_(given), parts_(given.workers) {
    for (unsigned i = 1; i <= given.workers; ++i) seats_.emplace_back(i, given.patience, parts_);
  }

  // The failure of one seat, or of the reader, ends all.
  void run() {
    ux::scope([&](ux::task_group& group) {
      group.spawn([&] { read(); });
      for (seat& each : seats_) group.spawn([&] { each.run(); });
    });
  }

  void print() const {
    tour::word_counts words;
    std::uint64_t all = 0, replaced = 0, sent_again = 0;
    for (const seat& each : seats_) {
      words.merge(each.words());
      replaced += each.replaced();
      sent_again += each.sent_again();
    }
    std::vector<std::pair<std::string, std::uint64_t>> ranking(words.begin(), words.end());
    for (const auto& [word, times] : ranking) all += times;
    std::sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    if (given_.top != 0 && ranking.size() > given_.top) ranking.resize(given_.top);
    for (const auto& [word, times] : ranking) std::printf("%ju %s\n", std::uintmax_t{times}, word.c_str());
    const read_totals& read = texts_.totals();
    std::fprintf(stderr,
                 "calls: %ju words, %zu distinct, in %ju files, %ju bytes, %ju parts; %ju unreadable; %ju workers "
                 "replaced, %ju parts sent again\n",
                 std::uintmax_t{all}, words.size(), std::uintmax_t{read.files}, std::uintmax_t{read.bytes},
                 std::uintmax_t{read.parts}, std::uintmax_t{read.unreadable}, std::uintmax_t{replaced},
                 std::uintmax_t{sent_again});
  }

 private:
  void read() {
    for (const std::string& path : given_.paths) texts_.add(path);
    if (given_.paths.empty()) texts_.add(ux::os::standard_input());
    parts_.close();
  }

  const arguments& given_;
  ux::channel<part_ptr> parts_;  // so a slow worker slows the reader down
  text_parts texts_{parts_};
  std::deque<seat> seats_;
};

int coordinate(const arguments& given, examples::stop_signals& signals) {
  word_count count(given);
  const auto first = ux::when_any([&] { count.run(); }, [&] { return signals.wait(); });
  if (first.index == 0) {
    count.print();
    return 0;
  }
  const int signal = std::get<1>(first.value);
  std::fprintf(stderr, "calls: %s before all words were counted\n", examples::name_of(signal));
  return 128 + signal;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "calls", "Counts words by worker processes, over streams of gRPC.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ux::runtime_options& options) {
        ux::runtime runtime(options);
        if (!given.worker) return runtime.run(coordinate, std::cref(given), std::ref(signals));
        signals.release();  // a signal ends a worker at once: the coordinator replaces it
        work(runtime);
        return 0;
      });
}
