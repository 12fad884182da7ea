// Part 3: a server that sends back what it gets, and clients that compare.

#include "check.hpp"
#include "part.hpp"
#include "progress.hpp"
#include "server.hpp"
#include "text.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>

namespace tour {
namespace {

using ulexite::net::endpoint;
using ulexite::net::tcp_stream;

constexpr int messages_of_a_client = 50;
constexpr std::size_t longest_message = 4096;  // bytes

// Bytes that each side has sent, to be compared in the end.
struct traffic {
  std::atomic<std::uint64_t> by_clients{0}, by_server{0};
};

// The server's side of a connection: until the client ends it.
void echo(tcp_stream stream, traffic& sent) {
  std::array<char, 8192> piece{};  // a fiber's stack has room for it
  while (const std::size_t size = stream.read_some(piece.data(), piece.size())) {
    stream.write(piece.data(), size);
    sent.by_server += size;
  }
}

std::string random_message(std::minstd_rand& random) {
  std::string message(1 + random() % longest_message, '\0');
  for (char& character : message) character = static_cast<char>(random() >> 8);
  return message;
}

// The client's side: sends a message when the last one has returned.
void talk(const endpoint& server, std::size_t number, traffic& sent, progress& line) {
  tcp_stream stream = tcp_stream::connect(server);
  std::minstd_rand random(static_cast<unsigned>(number + 1));
  std::string answer;
  for (int i = 0; i < messages_of_a_client; ++i) {
    const std::string message = random_message(random);
    stream.write(message);
    answer.assign(message.size(), '\0');
    const std::size_t size = stream.read(answer.data(), answer.size());
    check_equal("bytes that came back", size, message.size());
    check(answer == message, "another message came back than was sent");
    sent.by_clients += message.size();
    line.add();
  }
}

}  // namespace

result echo_over_tcp(ulexite::runtime& runtime, std::size_t wanted) {
  const std::size_t clients = possible_clients(wanted);
  const std::uint64_t messages = clients * messages_of_a_client;
  progress line(runtime, "3/4 echo over TCP", "messages", messages);
  traffic sent;
  const stopwatch time;
  runtime.run([&] {
    serve_clients(
        clients, [&](tcp_stream stream) { echo(std::move(stream), sent); },
        [&](const endpoint& server, std::size_t number) { talk(server, number, sent, line); });
  });
  const double seconds = time.seconds();
  check_equal("messages", line.count(), messages);
  check_equal("bytes that the server sent back", sent.by_server.load(), sent.by_clients.load());
  return {.done = grouped(clients) + " clients at once, " + grouped(messages) + " messages, " + bytes(sent.by_clients) +
                  " each way",
          .check = "each answer is what was sent",
          .seconds = seconds,
          .rate = rate(static_cast<double>(messages), seconds, "messages"),
          .details = told_if_fewer(clients, wanted)};
}

}  // namespace tour
