#pragma once

#include "../bounded_log.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace http_server {

enum class log_format { text, json };

struct access_record {
  std::string_view peer, method, target, user_agent;
  unsigned status;      // 0: the connection was lost before an answer
  std::uint64_t bytes;  // of the answer's body that were sent
  std::chrono::microseconds duration;
};

// One line for each request, as text or as a JSON object:
//
//   time=2024-11-06T08:49:37.123Z peer=127.0.0.1:4711 method="GET" target="/" status=200 bytes=14 us=210 agent="curl/7"
//   request=2f1d0e7cc0a4b6f3 trace=4bf92f3577b34da6a3ce929d0e0e4736
//   {"time":"2024-11-06T08:49:37.123Z","peer":"127.0.0.1:4711","method":"GET",...,"request":"2f1d0e7cc0a4b6f3",
//   "trace":"4bf92f3577b34da6a3ce929d0e0e4736","span":"2f1d0e7cc0a4b6f3"}
//
// (broken here for the page). A slow reader does not delay the server: see bounded_log.hpp.
class access_log {
 public:
  // Appends to a file, and makes its folder if it is missing. "-" is standard output, "" is no log. Throws
  // std::system_error naming the file.
  access_log(const std::string& where, log_format format);

  // Writes the record, with the ids of the calling fiber's request (request_context.hpp). Any fiber. Never waits.
  void write(const access_record& record);

  [[nodiscard]] bool is_on() const noexcept { return log_.has_value(); }
  // As bounded_log::finish.
  std::size_t finish() { return is_on() ? log_->finish() : 0; }

 private:
  const log_format format_;
  std::optional<examples::bounded_log> log_;
};

// Prints a line about the server itself on stderr. The calling fiber waits for its reader, at most a second.
void say_event(log_format format, const std::string& event, const std::string& why);

}  // namespace http_server
