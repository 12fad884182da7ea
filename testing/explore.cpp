#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/base/random.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/failure_source.hpp>
#include <ulexite/testing/last_words.hpp>
#include <ulexite/testing/strategy.hpp>
#include <ulexite/testing/world.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace ulexite::testing {
namespace {

constexpr unsigned most_repeats = 2'000;

outcome replay(const choice_list& choices, world& in, const std::function<void()>& body) {
  const auto how = make_replay(choices);
  how->begin(0, 0);
  return in.run(*how, body);
}

// Finds fewer choices that still fail: drops halves, quarters, and so on down to single ones (ddmin, Zeller and
// Hildebrandt 2002).
choice_list shorten(choice_list choices, world& in, const std::function<void()>& body) {
  unsigned repeats = 0;
  std::size_t size = std::max<std::size_t>(choices.size() / 2, 1);
  while (size > 0 && !choices.empty()) {
    bool dropped = false;
    for (std::size_t from = 0; from < choices.size();) {
      if (++repeats > most_repeats) return choices;
      choice_list fewer = choices;
      const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(from);
      fewer.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, choices.size() - from)));
      if (!replay(fewer, in, body).reason.empty()) {
        choices = in.last().choices();  // without choices that no longer have an effect
        dropped = true;
      } else {
        from += size;
      }
    }
    if (!dropped || size > choices.size()) size /= 2;
  }
  return choices;
}

std::string words_of(const failed_schedule& failure, const outcome& seen, const exploration& of) {
  std::string text = "schedule " + std::to_string(failure.number) + (of.exhausted ? ", the last," : "") +
                     " fails: " + failure.reason + "\n" + seen.fibers;
  if (!text.ends_with('\n')) text += '\n';
  if (failure.reason.starts_with("deadlock") && text.find("found: circle") == std::string::npos)
    text += "In a run no signal comes, and no other thread counts.\n";
  return text + "to repeat it: ULEXITE_SCHEDULE=" + failure.replay;
}

// Repeats the failing run, as short as possible. The report describes this run.
failed_schedule describe(const world& found, const outcome& first, const exploration& of,
                         const explore_options& options, const std::function<void()>& body) {
  failed_schedule failure;
  failure.number = of.schedules;
  failure.digest = found.last().digest();
  failure.reason = first.reason;
  choice_list choices = found.last().choices();
  outcome seen = first;
  if (options.shorten && !choices.empty()) {
    world again(options);
    choices = shorten(std::move(choices), again, body);
    if (outcome shortest = replay(choices, again, body); !shortest.reason.empty()) seen = std::move(shortest);
    failure.reason = seen.reason;
  }
  failure.replay = to_string(choices);
  failure.switches = choices.size();
  failure.report = words_of(failure, seen, of);
  return failure;
}

// The mean number of points of a run. The maximum would grow with each run that continues at random.
class mean_length {
 public:
  void add(std::uint64_t points) noexcept {
    sum_ += std::min(points, 2 * mean_ + 100);
    mean_ = sum_ / ++runs_ + 1;
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return mean_; }

 private:
  std::uint64_t sum_ = 0, runs_ = 0, mean_ = 0;
};

std::unique_ptr<strategy> strategy_of(const explore_options& options) {
  if (!options.replay.empty()) return make_replay(parse_choices(options.replay));
  const char* const replay = std::getenv("ULEXITE_SCHEDULE");
  return replay && *replay ? make_replay(parse_choices(replay)) : make_strategy(options);
}

void refuse_negative(const char* name, std::chrono::nanoseconds time) {
  if (time.count() < 0)
    throw std::invalid_argument("explore_options::" + std::string(name) + " is " + std::to_string(time.count()) +
                                " ns, and must not be negative");
}

driver& driver_of_caller(const char* function) {
  if (auto* const own = static_cast<driver*>(detail::this_controller())) return *own;
  throw usage_error(std::string("ulexite::testing::") + function + " outside a run of explore");
}

}  // namespace

exploration find_failure(const explore_options& options, const std::function<void()>& body) {
  if (detail::this_scheduler() || detail::this_controller())
    throw usage_error("ulexite::testing::explore was called by a fiber");
  if (options.schedules == 0) throw std::invalid_argument("explore_options::schedules is 0, and must be at least 1");
  refuse_negative("slowness", options.slowness.value_or(std::chrono::nanoseconds(0)));
  refuse_negative("network.latency", options.network.latency);
  refuse_negative("network.jitter", options.network.jitter);
  const auto how = strategy_of(options);
  const auto start = std::chrono::steady_clock::now();
  const auto time = [&] { return std::chrono::steady_clock::now() - start; };
  detail::random seeds(options.seed);
  mean_length length;
  exploration result;
  const last_words in_case_of_death;
  world here(options);
  while (result.schedules < options.schedules && !result.failure) {
    how->begin(seeds.next(), length.get());
    const outcome seen = here.run(*how, body);
    if (seen.reason.empty()) how->check_fit();
    const driver& last = here.last();
    length.add(last.points());
    ++result.schedules;
    result.steps += last.steps();
    result.longest = std::max<std::uint64_t>(result.longest, last.choices_made());
    result.digest = last.digest();
    result.exhausted = !how->advance();
    if (!seen.reason.empty()) result.failure = describe(here, seen, result, options, body);
    const detail::failure_source* const also = detail::failure_source::installed();
    if (result.exhausted || (also && also->skipped()) || (options.real_time.count() > 0 && time() > options.real_time))
      break;
  }
  result.time = time();
  return result;
}

exploration explore(const explore_options& options, const std::function<void()>& body) {
  exploration result = find_failure(options, body);
  if (result.failure) throw schedule_failed(std::move(*result.failure));
  return result;
}

void run_with_virtual_time(const std::function<void()>& body) { explore({.strategy = "cooperative"}, body); }

void fail(const std::string& reason) { driver_of_caller("fail").fail(reason); }

std::uint32_t choose(std::uint32_t bound) {
  detail::controller* const own = detail::this_controller();
  return own ? own->choose(bound) : 0;
}

void point() { const detail::yield_point here; }

void note(std::uint64_t value) {
  if (auto* const own = static_cast<driver*>(detail::this_controller())) own->mix(value);
}

std::pair<net::tcp_stream, net::tcp_stream> stream_pair() {
  const auto [one, two] = driver_of_caller("stream_pair").sockets().make_pair();
  return {net::tcp_stream::adopt(one), net::tcp_stream::adopt(two)};
}

void partition(const net::endpoint& server) { driver_of_caller("partition").sockets().partition(server); }

void heal(const net::endpoint& server) { driver_of_caller("heal").sockets().heal(server); }

std::size_t reset_connections(const net::endpoint& server) {
  return driver_of_caller("reset_connections").sockets().reset_connections(server);
}

}  // namespace ulexite::testing
