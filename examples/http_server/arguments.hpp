#pragma once

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
  limits bounds;
  std::chrono::nanoseconds grace_time = std::chrono::seconds(10);
};

// Connects the command line's options with `given`, which must outlive `app`.
void describe(CLI::App& app, arguments& given);

}  // namespace http_server
