#pragma once

// How the choices of a run are made.

#include <ulexite/base/controller.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::testing {

// All choices of a run that are not 0: which one it is, and what was chosen.
using choice_list = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

std::string to_string(const choice_list& choices);

class strategy {
 public:
  using moment = detail::controller::moment;

  virtual ~strategy() = default;
  // Before each run. `length`: points of a run until now, in the mean.
  virtual void begin(std::uint64_t seed, std::uint64_t length) = 0;
  // Which of `who`, which are several. A fiber that has just yielded is not among them.
  virtual std::size_t pick(std::span<const std::uint64_t> who, moment moment) = 0;
  // A number below `bound`, which is above 1.
  virtual std::uint32_t choose(std::uint32_t bound) = 0;
  virtual void yielded(std::uint64_t) {}
  // A point at which only that fiber could go on.
  virtual void passed(std::uint64_t) {}
  // Goes on to the next run; false if there is none.
  virtual bool advance() { return true; }
};

// Throws std::invalid_argument.
std::unique_ptr<strategy> make_strategy(const std::string& name);
// Repeats one run: what to_string has given.
std::unique_ptr<strategy> make_replay(choice_list choices);
// Throws std::invalid_argument.
choice_list parse_choices(const std::string& text);

}  // namespace ulexite::testing
