#pragma once

// A client of redis: hiredis formats the commands and reads the replies, a tcp_stream carries them. A fiber that waits
// for a reply is suspended, and blocks no thread.
//
//   redis::connection db(redis::parse_endpoint("localhost:6379"));
//   redis::reply value = db.command("GET", "key");             // one round trip
//
//   for (const auto& key : keys) db.send("INCR", key);         // pipelining: many commands, one round trip
//   for (const auto& key : keys) use(db.receive()->integer);
//
//   db.send("SUBSCRIBE", "news");                              // and then one reply for each message:
//   for (;;) use(db.receive()->element[2]->str);               // ["message", "news", text]

#include <ulexite/net/tcp.hpp>

#include <hiredis/hiredis.h>

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace redis {

// An error of the server (ERR, WRONGTYPE, ...), or an answer that is not a reply.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <auto Free>
struct free_with {
  void operator()(auto* what) const noexcept { Free(what); }
};

// A reply of hiredis: type, integer, str and len, elements and element.
using reply = std::unique_ptr<redisReply, free_with<freeReplyObject>>;

// "127.0.0.1:6379", "[::1]:6379", "unix:/path", or "localhost:6379": a name is resolved here, and the first of its
// addresses is taken. A cancellation point then. Throws std::invalid_argument naming the text, std::system_error for a
// name that cannot be resolved.
ulexite::net::endpoint parse_endpoint(std::string_view text);

// One connection. An exception breaks it, except redis::error of command(): then make a new one. All waits are
// cancellation points. They throw std::system_error when the connection ends or fails, also std::errc::timed_out. One
// fiber may use it at a time.
class connection {
 public:
  // Connects. `patience` is the time limit of the connect, of each flush and of each wait for a reply.
  explicit connection(const ulexite::net::endpoint& to, std::chrono::nanoseconds patience = std::chrono::seconds(5));

  // Sends a command, its name and its arguments, and waits for the reply. Throws redis::error if the reply is an error.
  // Replies to earlier commands must have been received.
  reply command(const auto&... words) {
    send(words...);
    return checked(receive());
  }

  // Adds a command to those that go out with the next flush() or receive(). Never waits.
  void send(const auto&... words) { send_words(std::array{std::string_view(words)...}); }
  void send_words(std::span<const std::string_view> words);

  // Sends the added commands.
  void flush();

  // Returns the next reply, in the order of the commands, or the next message of a subscription. Calls flush() first,
  // so that no caller waits for the reply to a command that was not sent. Returns an error as any reply. Throws
  // redis::error for an invalid reply, or an array of more than 65,536 elements.
  reply receive();

  // Whether it is open with nothing to read. If it is not, though no reply is due, it has ended. Never waits.
  [[nodiscard]] bool is_quiet() const;

  // The reply, unless it is an error: throws redis::error.
  static reply checked(reply given);

 private:
  std::string name_;
  std::chrono::nanoseconds patience_;
  ulexite::net::tcp_stream stream_;
  std::string unsent_;
  std::unique_ptr<redisReader, free_with<redisReaderFree>> reader_;
};

}  // namespace redis
