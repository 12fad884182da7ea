#pragma once

#include <ulexite.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// The tour: each part shows one strength of fibers, on work with a result that can be checked.
namespace tour {

// The result of a part: a line of the table, and lines that follow below it.
struct result {
  std::string done;                  // what was done
  std::string check;                 // the comparison that held
  double seconds = 0;                // of the measured work alone
  std::string rate;                  // of the same
  std::vector<std::string> details;  // other interesting facts
};

// The parts. Each runs its fibers in `runtime`, throws wrong_result if a check fails, and another exception if the
// system refuses a resource.
result meet_on_a_channel(ulexite::runtime& runtime, std::size_t crowd);
result count_words(ulexite::runtime& runtime, const std::vector<std::filesystem::path>& directories);
result echo_over_tcp(ulexite::runtime& runtime, std::size_t clients);
result serve_http(ulexite::runtime& runtime, std::size_t clients);

}  // namespace tour
