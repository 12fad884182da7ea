#include "inspect.hpp"

#include <ulexite/interop/inspector.hpp>

#include <cstdio>

namespace examples {

struct inspection::page {
  page(ulexite::runtime& runtime, std::uint16_t port) : inspector(runtime, {.port = port}) {}
  ulexite::inspector inspector;
};

void describe_inspect(CLI::App& app, std::optional<std::uint16_t>& port) {
  app.add_option("--inspect", port, "Port of the inspector's page on 127.0.0.1; 0 takes a free one");
}

inspection::inspection(ulexite::runtime& runtime, std::optional<std::uint16_t> port) {
  if (!port) return;
  page_ = std::make_unique<page>(runtime, *port);
  std::printf("inspector on http://%s/\n", page_->inspector.endpoint().str().c_str());
  std::fflush(stdout);
}

inspection::~inspection() = default;

}  // namespace examples
