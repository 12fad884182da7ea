#pragma once

// The log: a JSON object a line, on stderr.

#include "../request_context.hpp"

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace chat {

// {"time":...,"level":...,"event":event, the fields, the ids of the fiber's request}. Bytes in them that are not UTF-8
// are replaced.
inline void log(spdlog::level::level_enum level, std::string_view event,
                const nlohmann::ordered_json& fields = nlohmann::ordered_json::object()) {
  nlohmann::ordered_json line{{"event", event}};
  line.update(fields);
  if (const auto& now = examples::current_request())
    line.update({{"request", now->request_id}, {"trace", now->trace.trace_id}, {"span", now->trace.span_id}});
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  spdlog::log(level, "{}", std::string_view(text).substr(1));  // the pattern has the first brace
}

inline constexpr const char* log_pattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)";

}  // namespace chat
