// tcp_proxy: what comes out at one end is a beginning of what went in at the other, and all of it if nothing failed.
#include "../../examples/tcp_proxy/session.hpp"
#include "world.hpp"

#include <spdlog/spdlog.h>

#include <string>
#include <system_error>

namespace {

using namespace worlds;

const net::endpoint proxy_at = net::endpoint::ip("10.0.0.1", 80), upstream_at = net::endpoint::ip("10.0.0.2", 80);

// Reads to the end, and answers with all of it twice.
void answer_twice(net::tcp_stream& stream) {
  std::string all;
  char data[16];
  std::error_code error;
  while (const std::size_t got = stream.read_some(data, sizeof data, error)) all.append(data, got);
  if (error) return;
  stream.write((all + all).data(), 2 * all.size(), error);
}

void ask(const std::string& text, bool& failed) {
  std::error_code error;
  auto stream = net::tcp_stream::connect(proxy_at, {.timeout = 3s}, error);
  std::string answer;
  if (!error) {
    stream.expires_after(60s);
    stream.write(text.data(), text.size(), error);
    if (!error) stream.shutdown_write(error);
    char data[16];
    while (!error) {
      const std::size_t got = stream.read_some(data, sizeof data, error);
      if (got == 0) break;
      answer.append(data, got);
    }
  }
  expect((text + text).starts_with(answer), "what comes out is what went in");
  expect(error || answer.empty() || answer.size() == 2 * text.size(), "what was cut is not taken for the whole");
  failed = error || answer.size() != 2 * text.size();
}

void world(bool bad_network) {
  net::tcp_listener proxy(proxy_at), upstream(upstream_at);
  const tcp_proxy::settings given{
      .upstream = "upstream", .upstreams = {upstream_at}, .connect_timeout = 2s, .idle_timeout = 5s};
  tcp_proxy::totals served;
  bool failed[2] = {};
  bool disturbed = false;
  ux::task_group servers, clients;
  const auto quiet = [](const net::endpoint&, const std::exception_ptr&) {};
  servers.spawn([&] {
    ux::task_group connections;
    proxy.serve(connections, [&](net::tcp_stream& client) { forward(client, given, served); },
                {.drain_time = 10s, .on_error = quiet});
  });
  servers.spawn([&] {
    ux::task_group connections;
    upstream.serve(connections, answer_twice, {.drain_time = 10s, .on_error = quiet});
  });
  for (int i = 0; i < 2; ++i) clients.spawn([&, i] { ask("request " + std::to_string(i), failed[i]); });
  clients.spawn([&] {
    if (choose(2) == 0) return;
    disturbed = true;
    disturb(choose(2) == 0 ? proxy_at : upstream_at);
  });
  clients.wait();
  proxy.close();
  upstream.close();
  servers.wait();
  if (!disturbed && !bad_network) expect(!failed[0] && !failed[1], "all of it comes out");
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  return run(argc, argv, [] { world(false); }, [] { world(true); });
}
