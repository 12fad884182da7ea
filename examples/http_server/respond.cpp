#include "respond.hpp"

#include "programs.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace http_server {
namespace http = boost::beast::http;
namespace {

struct program {
  std::string_view path;
  http::verb method, also;
  const char* allowed;
  void (*run)(incoming&, outgoing&);
};

constexpr program programs[] = {
    {"/hello", http::verb::get, http::verb::head, "GET, HEAD", hello},
    {"/upload", http::verb::post, http::verb::put, "POST, PUT", upload},
    {"/echo", http::verb::post, http::verb::put, "POST, PUT", echo},
};

const program* find_program(std::string_view target) {
  std::string path;
  if (!decode_target(target, path)) return nullptr;
  for (const program& each : programs)
    if (each.path == path) return &each;
  return nullptr;
}

}  // namespace

void respond(incoming& in, outgoing& out, const site& files) {
  const program* const found = find_program(in.target());
  const http::verb method = in.header().method();
  if (found && (method == found->method || method == found->also)) return found->run(in, out);
  // The body is not needed. A client that waits to be asked for it may keep it. But then it is unknown whether the
  // client will send it, so the connection must end.
  if (in.body_held_back())
    in.make_last();
  else
    in.skip_body();
  out.send(found ? not_allowed(in.header(), found->allowed) : from_site(in, files));
}

}  // namespace http_server
