#pragma once

#include "access_log.hpp"
#include "limits.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace http_server {

struct arguments {
  std::string directory;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;
  std::optional<std::uint16_t> inspect;
  std::size_t max_connections = 0;
  std::string certificate, key;  // both, or none: no encryption
  std::string access_log;
  log_format format = log_format::text;
  limits bounds;
  std::chrono::nanoseconds grace_time = std::chrono::seconds(10);
  std::chrono::nanoseconds drain_delay{0};
};

// Connects the command line's options with `given`, which must outlive `app`.
void describe(CLI::App& app, arguments& given);

// Reads the command line, and the file of --config, once more. Blocks the thread. Throws CLI::ParseError.
[[nodiscard]] arguments read_again(int argc, const char* const* argv);

}  // namespace http_server
