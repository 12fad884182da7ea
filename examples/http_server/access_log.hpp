#pragma once

#include "../bounded_log.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace http_server {

struct access_record {
  std::string_view peer, method, target, user_agent;
  unsigned status;      // 0: the connection was lost before an answer
  std::uint64_t bytes;  // of the answer's body that were sent
  std::chrono::microseconds duration;
};

// One line for each request:
//
//   time=2024-11-06T08:49:37.123Z peer=127.0.0.1:4711 method="GET" target="/" status=200 bytes=14 us=210 agent="curl/7"
//
// A slow reader does not delay the server: see bounded_log.hpp.
class access_log {
 public:
  // Appends to a file, and makes its folder if it is missing. "-" is standard output, "" is no log. Throws
  // std::system_error naming the file.
  explicit access_log(const std::string& where);

  // Any fiber. Never waits.
  void write(const access_record& record);

  [[nodiscard]] bool is_on() const noexcept { return log_.has_value(); }
  // As bounded_log::finish.
  std::size_t finish() { return is_on() ? log_->finish() : 0; }

 private:
  std::optional<examples::bounded_log> log_;
};

}  // namespace http_server
