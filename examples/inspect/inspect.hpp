#pragma once

// The option --inspect PORT of the servers: a page that shows what their fibers do.

#include <ulexite/runtime/runtime.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace examples {

void describe_inspect(CLI::App& app, std::optional<std::uint16_t>& port);

// Serves the page of `runtime` while this object exists, if a port is given. Prints the address of the page.
class inspection {
 public:
  // Throws std::system_error if it cannot listen on the port.
  inspection(ulexite::runtime& runtime, std::optional<std::uint16_t> port);
  ~inspection();
  inspection(const inspection&) = delete;
  inspection& operator=(const inspection&) = delete;

 private:
  struct page;
  std::unique_ptr<page> page_;
};

}  // namespace examples
