#pragma once

// Strategies, which make the choices of a run.

#include <ulexite/base/controller.hpp>
#include <ulexite/testing/explore.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::testing {

// All choices of a run that are not 0: the position of the choice, and its value.
using choice_list = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

std::string to_string(const choice_list& choices);

class strategy {
 public:
  using moment = detail::controller::moment;

  virtual ~strategy() = default;
  // Called before each run. `length` is the mean number of points of a run so far.
  virtual void begin(std::uint64_t seed, std::uint64_t length) = 0;
  // Picks one of `who`, which has several fibers. A fiber that has just yielded is not among them.
  virtual std::size_t pick(std::span<const std::uint64_t> who, moment moment) = 0;
  // Returns a number below `bound`, which is above 1.
  virtual std::uint32_t choose(std::uint32_t bound) = 0;
  virtual void yielded(std::uint64_t) {}
  // Called at a point at which only one fiber, given by its number, could continue.
  virtual void passed(std::uint64_t) {}
  // Called after a run without a failure. Throws std::invalid_argument if this strategy repeats a run, and that run was
  // another one.
  virtual void check_fit() const {}
  // Advances to the next run; false if there is none.
  virtual bool advance() { return true; }
};

// Throws std::invalid_argument.
std::unique_ptr<strategy> make_strategy(const explore_options& options);
// Makes a strategy that repeats one run, given the choices of to_string.
std::unique_ptr<strategy> make_replay(choice_list choices);
// Throws std::invalid_argument.
choice_list parse_choices(const std::string& text);

}  // namespace ulexite::testing
