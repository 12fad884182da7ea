#pragma once

// Entries of redis' streams. Included by redis.hpp.

#include <ulexite/interop/redis_reply.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulexite::redis {

// An entry of a stream.
struct stream_entry {
  std::string id;                                           // such as "1700000000000-0"
  std::vector<std::pair<std::string, std::string>> fields;  // none: it was deleted, and is still pending

  // The value of the first field of this name; nullopt if there is none. Valid as long as the entry.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const {
    for (const auto& [each, value] : fields)
      if (each == name) return value;
    return std::nullopt;
  }
};

// The entries in a list of them, in its order: in the reply to XRANGE or XCLAIM, in the second element of that to
// XAUTOCLAIM. Leaves out those for which XCLAIM has null. Throws reply_error for another reply.
inline std::vector<stream_entry> entries_in(const reply_view& list) {
  std::vector<stream_entry> found;
  for (const reply_view each : list) {
    if (each.is_null()) continue;
    stream_entry& entry = found.emplace_back(stream_entry{.id = std::string(each[0].text()), .fields = {}});
    const reply_view fields = each[1];
    for (std::size_t i = 0; i < fields.size(); i += 2)
      entry.fields.emplace_back(fields[i].text(), fields[i + 1].text());
  }
  return found;
}

// The entries in the reply to XREAD or XREADGROUP, with the name of each stream. None if the time of BLOCK passed
// first. Throws reply_error for another reply.
//
// A fiber that leaves XREADGROUP early may leave entries that were delivered to its consumer and that it has not seen:
// let BLOCK end by itself, or read the consumer's pending entries (from "0" instead of ">") when it returns.
inline std::vector<std::pair<std::string, std::vector<stream_entry>>> streams_in(const reply_view& read) {
  std::vector<std::pair<std::string, std::vector<stream_entry>>> found;
  for (const reply_view each : read) found.emplace_back(each[0].text(), entries_in(each[1]));
  return found;
}

}  // namespace ulexite::redis
