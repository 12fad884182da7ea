// TCP echo, one fiber per connection: echo PORT THREADS

#include <ulexite.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace {

void serve(ulexite::net::tcp_stream stream) {
  char buffer[4096];
  std::error_code error;
  for (;;) {
    const std::size_t got = stream.read_some(buffer, sizeof buffer, error);
    if (error || got == 0) return;
    stream.write(buffer, got, error);
    if (error) return;
  }
}

void accept_all(const std::string& port) {
  auto listener = ulexite::net::tcp_listener::listen(ulexite::net::endpoint::parse("127.0.0.1:" + port));
  for (;;) ulexite::spawn([stream = listener.accept()]() mutable { serve(std::move(stream)); }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PORT THREADS\n", argv[0]);
    return 2;
  }
  try {
    ulexite::runtime runtime({.threads = std::stoul(argv[2]), .stack_size = 64 * 1024});
    runtime.run(accept_all, argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "echo: %s\n", e.what());
    return 1;
  }
  return 0;
}
