#pragma once

// A client of redis: hiredis formats the commands and reads the replies, a tcp_stream carries them. The fiber that
// waits for a reply is suspended; no thread is.
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

// What the server answered with an error (ERR, WRONGTYPE, ...), or what is no answer at all.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <auto Free>
struct free_with {
  void operator()(auto* what) const noexcept { Free(what); }
};

// As hiredis tells it: type, integer, str and len, elements and element.
using reply = std::unique_ptr<redisReply, free_with<freeReplyObject>>;

// "127.0.0.1:6379", "[::1]:6379", "unix:/path", or "localhost:6379": a name is resolved here, and the first of its
// addresses is taken. A cancellation point then. Throws std::invalid_argument naming the text, std::system_error for a
// name that cannot be resolved.
ulexite::net::endpoint parse_endpoint(std::string_view text);

// One connection. What throws breaks it, but for the redis::error of command(): make a new one. All waits are
// cancellation points, and throw std::system_error when the connection ends or fails, std::errc::timed_out among them.
// For one fiber at a time.
class connection {
 public:
  // Connects. `patience`: how long that, each flush and each wait for a reply may take.
  explicit connection(const ulexite::net::endpoint& to, std::chrono::nanoseconds patience = std::chrono::seconds(5));

  // Sends a command, its name and its arguments, and waits for the reply. Throws redis::error if that is an error.
  // Replies to earlier commands must have been received.
  reply command(const auto&... words) {
    send(words...);
    return checked(receive());
  }

  // Adds a command to those that go out with the next flush() or receive(). Never waits.
  void send(const auto&... words) { send_words(std::array{std::string_view(words)...}); }
  void send_words(std::span<const std::string_view> words);

  // Sends what was added.
  void flush();

  // The next reply, in the order of the commands, or the next message of a subscription. flush() comes first, so that
  // nobody waits for the reply to a command that was never sent. An error is returned as any reply. Throws redis::error
  // for what is no reply, or has an array of more than 65,536 elements.
  reply receive();

  // Is it open with nothing to read? One that is not, though no reply is due, has come to its end. Does not wait.
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
