// TCP echo, one fiber per connection: echo PORT THREADS. With a third word, `coroutines`, each is a coroutine that
// waits without a stack.

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace {

// Sends back what comes, up to `size` bytes. Returns how many; 0 at the end and after an error.
template <std::size_t size>
[[gnu::noinline]] std::size_t echo(ulexite::net::tcp_stream& stream) {
  char buffer[size];
  std::error_code error;
  const std::size_t got = stream.read_some(buffer, size, error);
  if (!error && got > 0) stream.write(buffer, got, error);
  return error ? 0 : got;
}

// Waits with a small buffer, because an idle connection keeps each page that its stack has touched.
void serve(ulexite::net::tcp_stream stream) {
  constexpr std::size_t small = 512;
  for (std::size_t last = 1; last > 0;) last = last < small ? echo<small>(stream) : echo<4096>(stream);
}

ulexite::task<> serve_without_a_stack(ulexite::net::tcp_stream stream) {
  do co_await ulexite::co_readable(stream);
  while (echo<4096>(stream) > 0);
}

void accept_all(const std::string& port, bool as_coroutines) {
  auto listener = ulexite::net::tcp_listener::listen(ulexite::net::endpoint::parse("127.0.0.1:" + port));
  for (;;) {
    if (as_coroutines)
      ulexite::co_spawn(serve_without_a_stack(listener.accept())).detach();
    else
      ulexite::spawn([stream = listener.accept()]() mutable { serve(std::move(stream)); }).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool as_coroutines = argc == 4 && std::string_view(argv[3]) == "coroutines";
  if (argc != 3 && !as_coroutines) {
    std::fprintf(stderr, "usage: %s PORT THREADS [coroutines]\n", argv[0]);
    return 2;
  }
  try {
    ulexite::runtime runtime({.threads = std::stoul(argv[2]), .stack_size = 64 * 1024});
    runtime.run(accept_all, argv[1], as_coroutines);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "echo: %s\n", e.what());
    return 1;
  }
  return 0;
}
