#include "respond.hpp"

#include "answer.hpp"
#include "programs.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace http_server {
namespace {

struct program {
  std::string_view path;
  http::verb method, also;
  const char* allowed;
  void (*run)(http::exchange&);
};

constexpr program programs[] = {
    {"/hello", http::verb::get, http::verb::head, "GET, HEAD", hello},
    {"/upload", http::verb::post, http::verb::put, "POST, PUT", upload},
    {"/echo", http::verb::post, http::verb::put, "POST, PUT", echo},
};

const program* find_program(std::string_view path) {
  for (const program& each : programs)
    if (each.path == path) return &each;
  return nullptr;
}

}  // namespace

void respond(http::exchange& now, const site& files) {
  const http::request& asked = now.request();
  const http::verb method = asked.method();
  if (method == http::verb::unknown)
    throw http::refusal(http::status::not_implemented, "the method is \"" + std::string(asked.method_string()) + "\"");
  const std::string path = decode_target(http::view(asked.target()));
  const program* const found = find_program(path);
  if (found && (method == found->method || method == found->also)) return found->run(now);
  if (!now.body_held_back()) now.skip_body();  // it is not needed
  if (found) return now.send(not_allowed(found->allowed));
  send(now, from_site(asked, path, files));
}

}  // namespace http_server
