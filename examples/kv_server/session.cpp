#include "session.hpp"

#include <ulexite/interop/lingering_close.hpp>

#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <string>

namespace kv_server {
namespace {

constexpr std::size_t most_unsent = 64 * 1024;  // then the replies go out before the next request

class session {
 public:
  session(ulexite::net::tcp_stream& client, database& home, const session_limits& limits)
      : client_(client),
        home_(home),
        self_{home.connections.fetch_add(1, std::memory_order_relaxed) + 1},  // counter
        limits_(limits),
        requests_(limits.requests),
        replies_(limits.requests.request + most_unsent) {}

  void run() {
    try {
      while (answer_some()) {
      }
    } catch (const protocol_error& error) {
      spdlog::info("event=protocol_error peer={} reason={:?}", client_.remote_endpoint().str(), error.what());
      replies_.error("ERR Protocol error: " + std::string(error.what()));
      send();
    }
    ulexite::net::lingering_close(client_, std::chrono::seconds(1));
  }

 private:
  // False: the client has left, or has quit.
  bool answer_some() {
    std::array<char, 16 * 1024> portion;
    client_.expires_after(limits_.idle);
    const std::size_t got = client_.read_some(portion.data(), portion.size());
    requests_.feed({portion.data(), got});
    bool more = got != 0;
    while (const auto* const request = more ? requests_.next() : nullptr) {
      more = execute(*request, replies_, home_, self_);
      if (replies_.text().size() >= most_unsent) send();
    }
    send();
    return more;
  }

  void send() {
    if (replies_.text().empty()) return;
    client_.expires_after(limits_.idle);
    client_.write(replies_.text());
    replies_.clear();
  }

  ulexite::net::tcp_stream& client_;
  database& home_;
  client_info self_;
  const session_limits& limits_;
  request_parser requests_;
  reply_buffer replies_;
};

}  // namespace

void attend(ulexite::net::tcp_stream& client, database& home, const session_limits& limits) {
  session(client, home, limits).run();
}

}  // namespace kv_server
