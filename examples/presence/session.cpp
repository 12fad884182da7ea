#include "session.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace presence {
namespace {

using namespace std::chrono_literals;

// Reads what has come, up to a block, into a buffer that exists only during the call. An idle client has none.
std::size_t read_block(ulexite::net::tcp_stream& from, auto use) {
  std::array<char, 4096> block;
  const std::size_t got = from.read_some(block.data(), block.size());
  use(std::string_view(block.data(), got));
  return got;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) { return c > ' ' && c != 0x7F; });
}

// One client's commands. All of it is ordinary code.
class session {
 public:
  session(ulexite::net::tcp_stream stream, home& in)
      : in_(in), client_(std::make_shared<client>(std::move(stream), in.senders, in.bounds)) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() {
    for (const std::string& each : watched_) in_.people.unwatch(each, client_);
    if (!name_.empty()) in_.people.leave(name_);
    client_->stream().close();  // also for coroutines that still send
  }

  [[nodiscard]] client& peer() noexcept { return *client_; }

  // Answers the commands that have come. False: no more will come, or none is wanted.
  bool answer() {
    bool more = false;
    const auto use = [&](std::string_view block) { more = take(block); };
    return read_block(client_->stream(), use) > 0 && more;
  }

 private:
  bool take(std::string_view block);
  void execute(std::string_view line);
  void reply(const std::string& text) { client_->reply(text + "\n"); }

  home& in_;
  const std::shared_ptr<client> client_;
  std::string name_;  // empty until JOIN
  std::set<std::string> watched_;
  std::string rest_;  // the beginning of a line whose end has not come
};

bool session::take(std::string_view block) {
  for (std::size_t end; (end = block.find('\n')) != block.npos; block.remove_prefix(end + 1)) {
    if (rest_.size() + end > in_.bounds.line) break;
    rest_.append(block.substr(0, end));
    if (rest_.ends_with('\r')) rest_.pop_back();
    execute(std::exchange(rest_, {}));
  }
  if (rest_.size() + std::min(block.find('\n'), block.size()) > in_.bounds.line) {
    reply("ERROR the line is too long");
    return false;
  }
  rest_.append(block);
  return true;
}

void session::execute(std::string_view line) {
  const std::string_view command = line.substr(0, line.find(' '));
  const std::string argument(line.substr(std::min(command.size() + 1, line.size())));
  if (command == "PING") {
    reply("PONG");
  } else if (command == "SAY") {
    if (name_.empty()) return reply("ERROR who are you? JOIN first");
    in_.people.say(name_, argument);
    reply("OK");
  } else if (command != "JOIN" && command != "WATCH" && command != "UNWATCH") {
    if (!line.empty()) reply("ERROR unknown command");
  } else if (!is_name(argument)) {
    reply("ERROR a name has 1 to 64 characters, and no blanks");
  } else if (command == "JOIN") {
    if (!name_.empty()) return reply("ERROR you are " + name_);
    in_.people.join(argument);
    name_ = argument;
    reply("OK");
  } else if (command == "UNWATCH") {
    if (watched_.erase(argument) > 0) in_.people.unwatch(argument, client_);
    reply("OK");
  } else if (watched_.size() < in_.bounds.watched) {
    watched_.insert(argument);
    in_.people.watch(argument, client_);  // which replies
  } else {
    reply("ERROR you watch too many names");
  }
}

// Waits, for a second at most, until the client has closed. A close with unread input would reset the connection, and
// the client might lose the last lines.
ulexite::task<> part(ulexite::net::tcp_stream& from) {
  from.shutdown_write();
  from.reads_expire_after(1s);
  do co_await ulexite::co_readable(from);
  while (read_block(from, [](std::string_view) {}) > 0);
}

}  // namespace

ulexite::task<> attend(ulexite::net::tcp_stream stream, home& in) {
  session visit(std::move(stream), in);
  client& peer = visit.peer();
  try {
    for (bool more = true; more;) {
      co_await ulexite::co_readable(peer.stream());
      more = visit.answer();
      co_await peer.send_outbox();
    }
  } catch (const ulexite::operation_cancelled&) {
    peer.reply("BYE\n");
  } catch (const std::system_error&) {  // it has left, or was dropped
    co_return;
  }
  const ulexite::shield last_words;
  try {
    co_await peer.send_outbox();
    co_await part(peer.stream());
  } catch (const std::system_error&) {
  }
}

void serve(ulexite::net::tcp_listener& listener, home& in, std::size_t most) {
  const auto handler = [&in](ulexite::net::tcp_stream& stream, const std::stop_token&) {
    stream.set_keepalive(5min, 30s, 4);  // so that a client whose machine has gone does not stay for ever
    in.served.fetch_add(1, std::memory_order_relaxed);  // a counter
    return attend(std::move(stream), in);
  };
  listener.serve(in.clients, handler, {.max_connections = most, .drain_time = 0s, .grace = 0s});
  in.clients.wait();
  in.senders.wait();
}

}  // namespace presence
