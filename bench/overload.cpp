// More requests than a server can answer: overload PORT CONNECTIONS RATE SECONDS [PATH]
//
// RATE requests per second in all, at fixed times on each connection, whether the answers before have come or not. Each
// is 64 bytes to an echo server or, with a PATH, a GET. A request is left out if its time passes while the system takes
// no more bytes, or while this program is late. Prints the requests sent and answered per second, and the answers that
// the connection with the fewest got, as a share of the mean. Answers are told apart by their size, which must be that
// of the first. Each side needs a processor of its own: taskset -c 0 SERVER; taskset -c 1 overload ...

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace ux = ulexite;
using namespace std::chrono_literals;

struct connection {
  ux::net::tcp_stream stream;
  std::uint64_t sent = 0, bytes = 0;  // of the requests, of the answers
};

// The size of an answer: of all that comes within 100 ms.
std::size_t size_of_answer(ux::net::tcp_stream& stream, const std::string& request) {
  stream.write(request.data(), request.size());
  std::size_t size = 0;
  char block[4096];
  std::error_code error;
  stream.expires_after(100ms);
  while (const std::size_t got = stream.read_some(block, sizeof block, error)) size += got;
  stream.expires_never();
  if (size == 0) throw std::runtime_error("there is no answer within 100 ms");
  return size;
}

void send(connection& to, const std::string& request, ux::steady_clock::time_point next,
          std::chrono::nanoseconds interval, ux::steady_clock::time_point end) {
  std::error_code error;
  for (to.stream.writes_expire_at(end); next < end;) {
    ux::this_fiber::sleep_until(next);
    to.stream.write(request.data(), request.size(), error);
    if (error) return;
    ++to.sent;
    next += interval * ((ux::steady_clock::now() - next) / interval + 1);
  }
}

void receive(connection& from, ux::steady_clock::time_point end) {
  std::vector<char> block(16 * 1024);
  std::error_code error;
  from.stream.reads_expire_at(end);
  while (const std::size_t got = from.stream.read_some(block.data(), block.size(), error)) from.bytes += got;
  if (ux::steady_clock::now() < end) throw std::runtime_error("the server has ended a connection");
}

void run(const std::string& port, std::size_t count, double rate, double seconds, const std::string& request) {
  const auto at = ux::net::endpoint::parse("127.0.0.1:" + port);
  std::vector<connection> all(count);
  for (connection& each : all) each.stream = ux::net::tcp_stream::connect(at);
  const auto answer = static_cast<double>(size_of_answer(all.front().stream, request));
  const auto begin = ux::steady_clock::now() + 500ms;
  const auto end = begin + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  const auto interval = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(count) / rate));
  ux::task_group group;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = begin + interval * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count);
    group.spawn([&, i, first] { send(all[i], request, first, interval, end); });
    group.spawn([&, i] { receive(all[i], end); });
  }
  group.wait();
  double sent = 0, got = 0, least = 1e18;
  for (const connection& each : all) {
    const double answers = static_cast<double>(each.bytes) / answer;
    sent += static_cast<double>(each.sent);
    got += answers;
    least = std::min(least, answers);
  }
  std::printf("sent_per_s %.0f\nanswered_per_s %.0f\nleast_of_mean %.2f\n", sent / seconds, got / seconds,
              least * static_cast<double>(count) / std::max(got, 1.0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: %s PORT CONNECTIONS RATE SECONDS [PATH]\n", argv[0]);
    return 2;
  }
  const std::string request =
      argc == 6 ? "GET " + std::string(argv[5]) + " HTTP/1.1\r\nHost: x\r\n\r\n" : std::string(64, 'x');
  try {
    const std::size_t connections = std::stoul(argv[2]);
    const double rate = std::stod(argv[3]), seconds = std::stod(argv[4]);
    if (connections == 0 || !(rate > 0) || !(seconds > 0)) throw std::invalid_argument("each number must be above 0");
    ux::runtime runtime({.threads = 1, .stack_size = 64 * 1024});
    runtime.run(run, argv[1], connections, rate, seconds, request);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "overload: %s\n", e.what());
    return 1;
  }
}
