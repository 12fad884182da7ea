#pragma once

#include "part.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace tour {

// The summary at the end: a table of the parts, their other results, and the runtime's counters.
class summary {
 public:
  void add(std::string part, result result);
  void add_failure(std::string part, std::string why);
  // False if the counts show a defect of the runtime.
  bool add_metrics(const ulexite::runtime_metrics& metrics);
  void print(std::ostream& out) const;

 private:
  struct row {
    std::string part, done, check, time, rate;
  };
  struct notes {
    std::string title;
    std::vector<std::string> lines;
  };

  std::vector<row> table_{{"part", "what was done", "check", "time", "rate"}};
  std::vector<notes> notes_;
};

}  // namespace tour
