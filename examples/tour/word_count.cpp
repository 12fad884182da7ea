// Part 2: a pipeline. One fiber hands out files, several read and count, and one collects the results; channels connect
// them. Then one plain thread counts again, and must get equal results. Before both, the files are listed and read into
// memory. Otherwise the first measurement would include the disk.

#include "check.hpp"
#include "files.hpp"
#include "part.hpp"
#include "progress.hpp"
#include "team.hpp"
#include "text.hpp"
#include "words.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tour {
namespace {

using directories = std::vector<std::filesystem::path>;

// The results. Each file has its place in both vectors.
struct census {
  std::vector<source_file> files;
  std::vector<std::optional<file_count>> counts;
  word_counts words;
  skipped passed_over;
};

// Passed to the readers, and from them to the collector.
struct assignment {
  std::size_t number;
  const source_file* file;
};
struct tally {
  word_counts words;
  std::vector<std::pair<std::size_t, std::optional<file_count>>> counts;
};
using assignments = ulexite::channel<assignment>;
using tallies = ulexite::channel<tally>;

// Closes a channel at the end of a scope, also after an exception, so that no fiber waits for a failed fiber.
template <class T>
class closing {
 public:
  explicit closing(ulexite::channel<T>& channel) noexcept : channel_(channel) {}
  ~closing() { channel_.close(); }
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;

 private:
  ulexite::channel<T>& channel_;
};

// Runs ahead of the readers while the channel has room, then waits for them.
void hand_out(const std::vector<source_file>& files, assignments& to_read) {
  const closing end(to_read);
  for (std::size_t i = 0; i < files.size(); ++i) to_read.send({i, &files[i]});
}

void count_files(assignments& to_read, tallies& counted, progress& line) {
  const closing end(to_read);  // it is closed already, unless this reader fails
  tally mine;
  file_counter counter(mine.words);
  for (const assignment& next : to_read) {
    mine.counts.emplace_back(next.number, counter.count(*next.file));
    line.add();
  }
  counted.send(std::move(mine));
}

void collect(tallies& counted, census& all) {
  for (const tally& one : counted) {
    all.words.merge(one.words);
    for (const auto& [number, count] : one.counts) {
      if (all.counts.size() <= number) all.counts.resize(number + 1);
      all.counts[number] = count;
    }
  }
}

// Inside a fiber. The order of the variables is the reverse of that in which they end.
void count_in_fibers(census& all, std::size_t readers, progress& line) {
  assignments to_read(256);
  tallies counted;
  team ends;
  ends.spawn([&] { hand_out(all.files, to_read); });
  ends.spawn([&] { collect(counted, all); });
  team middle;
  for (std::size_t i = 0; i < readers; ++i) middle.spawn([&] { count_files(to_read, counted, line); });
  middle.wait();
  counted.close();
  ends.wait();
}

// The same files, one after the other.
census count_alone(const std::vector<source_file>& files, progress& line) {
  census all;
  file_counter counter(all.words);
  for (const auto& file : files) {
    all.counts.push_back(counter.count(file));
    line.add();
  }
  return all;
}

// Throws unless both results are equal. Returns the number of files that cannot be compared, because they were changed
// or removed during the count.
std::size_t compare(const census& fibers, const census& alone) {
  check_equal("files counted", fibers.counts.size(), fibers.files.size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < fibers.files.size(); ++i) {
    if (fibers.counts[i] == alone.counts[i]) continue;
    check(has_changed(fibers.files[i]), "fibers and thread found different words in " + fibers.files[i].path.string());
    ++changed;
  }
  if (changed == 0) check(fibers.words == alone.words, "fibers and thread differ in how often a word occurs");
  return changed;
}

std::vector<std::string> most_frequent(const word_counts& words, std::size_t most) {
  std::vector<std::pair<std::string, std::uint64_t>> ranking(words.begin(), words.end());
  const auto kept = std::min(most, ranking.size());
  std::partial_sort(
      ranking.begin(), ranking.begin() + static_cast<std::ptrdiff_t>(kept), ranking.end(),
      [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  ranking.resize(kept);
  std::vector<std::string> lines;
  for (const auto& [word, times] : ranking) lines.push_back(right(grouped(times), 13) + " " + word);
  return lines;
}

struct times {
  double walk, fibers, alone;  // seconds
};

result report(const census& all, std::size_t changed, const times& taken) {
  file_count sum;
  std::uint64_t files = 0;
  skipped passed_over = all.passed_over;
  for (const auto& count : all.counts) {
    count ? ++files : ++passed_over.unreadable;
    sum.bytes += count ? count->bytes : 0;
    sum.words += count ? count->words : 0;
  }
  result result;
  result.done = grouped(files) + " files, " + grouped(sum.bytes) + " bytes, " + grouped(sum.words) + " words, " +
                grouped(all.words.size()) + " distinct";
  result.check = "one thread, same counts";
  result.seconds = taken.fibers;
  result.rate = rate(static_cast<double>(sum.bytes) / 1e6, taken.fibers, "MB");
  result.details = most_frequent(all.words, 10);
  result.details.push_back("one thread: " + duration(taken.alone) + "; to find the files: " + duration(taken.walk));
  result.details.push_back("skipped: " + passed_over.str());
  if (changed != 0) result.details.push_back(grouped(changed) + " files changed meanwhile and were not compared");
  return result;
}

}  // namespace

result count_words(ulexite::runtime& runtime, const directories& roots) {
  progress line(runtime, "2/4 counting words", "files found");
  census all;
  times taken{};
  const stopwatch walking;
  for (const auto& root : roots)
    walk(root, all.passed_over, [&](source_file file) {
      all.files.push_back(std::move(file));
      line.add();
    });
  taken.walk = walking.seconds();
  line.restart("files read", all.files.size());
  for (const auto& file : all.files) {
    warm_up(file);
    line.add();
  }

  // Each reader has a table of words. More tables than workers would only displace each other from the caches.
  const std::size_t readers = std::max<std::size_t>(2, runtime.metrics().workers);
  line.restart("files counted", all.files.size());
  const stopwatch fibers;
  runtime.run([&] { count_in_fibers(all, readers, line); });
  taken.fibers = fibers.seconds();

  line.restart("files counted again by one thread", all.files.size());
  const stopwatch thread;
  const census alone = count_alone(all.files, line);
  taken.alone = thread.seconds();
  return report(all, compare(all, alone), taken);
}

}  // namespace tour
