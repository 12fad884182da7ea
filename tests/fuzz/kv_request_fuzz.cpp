// Requests to kv_server: the portions in which they come change nothing, and little is kept of them.
#include "../../examples/kv_server/request_parser.hpp"
#include "fuzz.hpp"

#include <string>
#include <vector>

namespace {

constexpr kv_server::request_limits limits{.value = 100, .request = 150, .arguments = 4};

struct outcome {
  std::vector<std::vector<std::string>> requests{};
  std::string error{};

  friend bool operator==(const outcome&, const outcome&) = default;
};

// `portion` gives the size of the next one.
outcome parse(std::string_view bytes, const auto& portion) {
  outcome result;
  kv_server::request_parser parser(limits);
  try {
    while (!bytes.empty()) {
      const std::string_view next = bytes.substr(0, portion());
      bytes.remove_prefix(next.size());
      parser.feed(next);
      while (const auto* const request = parser.next()) {
        std::size_t sum = 0;
        for (const std::string_view each : *request) sum += each.size();
        fuzz::require(!request->empty() && request->size() <= limits.arguments, "one to as many as are allowed");
        fuzz::require(sum <= limits.request, "not larger than is allowed");
        result.requests.emplace_back(request->begin(), request->end());
      }
      fuzz::require(parser.kept() <= limits.request + next.size() + 64 * (limits.arguments + 1), "little is kept");
    }
  } catch (const kv_server::protocol_error& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input from(data, size);
  const outcome whole = parse(from.text, [&] { return from.text.size(); });
  const outcome single = parse(from.text, [] { return std::size_t{1}; });
  const outcome some = parse(from.text, [&] { return 1 + from.choose(32); });
  fuzz::require(whole == single && single == some, "the same for portions of any size");
  return 0;
}
