// kv_server: clients count on one key. Each answer is another number, and the last value is no less than what was
// answered, and no more than what was asked.
#include "../../examples/kv_server/session.hpp"
#include "world.hpp"

#include <spdlog/spdlog.h>

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <system_error>

namespace {

using namespace worlds;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 6379);

struct count {
  std::set<long> answered;
  long asked = 0;
};

// nullopt: the connection can no longer be used.
std::optional<std::string> read_line(net::tcp_stream& from, std::string& rest) {
  for (;;) {
    if (const auto end = rest.find("\r\n"); end != rest.npos) {
      std::string line = rest.substr(0, end);
      rest.erase(0, end + 2);
      return line;
    }
    char data[32];
    std::error_code error;
    const std::size_t got = from.read_some(data, sizeof data, error);
    if (error || got == 0) return std::nullopt;
    rest.append(data, got);
  }
}

// Sends what it asks in one piece or in several, and reads the answers behind.
void talk(count& counted) {
  std::error_code error;
  auto stream = net::tcp_stream::connect(server_at, {.timeout = 3s}, error);
  if (error) return;
  stream.expires_after(5s);
  std::string rest;
  const std::size_t pipelined = 1 + choose(3);
  std::string requests;
  for (std::size_t i = 0; i < pipelined; ++i)
    requests += choose(2) == 0 ? "INCR visits\r\n" : "*2\r\n$4\r\nincr\r\n$6\r\nvisits\r\n";
  counted.asked += static_cast<long>(pipelined);
  stream.write(requests.data(), requests.size(), error);
  if (error) return;
  for (std::size_t i = 0; i < pipelined; ++i) {
    const auto line = read_line(stream, rest);
    if (!line) return;
    expect(line->size() > 1 && line->front() == ':', "a number as the answer");
    long value = 0;
    std::from_chars(line->data() + 1, line->data() + line->size(), value);
    expect(counted.answered.insert(value).second, "another number each time");
  }
}

void world(bool bad_network) {
  kv_server::database home;
  const kv_server::session_limits limits;
  count counted;
  net::tcp_listener listener(server_at);
  ux::task_group server, clients;
  server.spawn([&] {
    ux::task_group connections;
    listener.serve(connections, [&](net::tcp_stream& client) { attend(client, home, limits); },
                   {.drain_time = 2s, .on_error = [](const net::endpoint&, const std::exception_ptr&) {}});
  });
  for (int i = 0; i < 2; ++i)
    clients.spawn([&] {
      for (int turn = 0; turn < 2; ++turn) talk(counted);
    });
  const bool disturbed = choose(2) != 0;
  clients.spawn([&] {
    if (disturbed) disturb(server_at);
  });
  clients.wait();
  listener.close();
  server.wait();
  kv_server::store::reader look(home.data, kv_server::store::shard_of("visits"));
  const auto* const entry = look.find("visits");
  const long last = entry ? std::stol(entry->value) : 0;
  expect(last >= static_cast<long>(counted.answered.size()), "no answered increment is lost");
  expect(last <= counted.asked, "no increment is done twice");
  if (!bad_network && !disturbed)
    expect(static_cast<long>(counted.answered.size()) == counted.asked, "every request is answered");
  expect(counted.answered.empty() || *counted.answered.rbegin() <= last, "no answer is of the future");
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  return run(argc, argv, [] { world(false); }, [] { world(true); });
}
