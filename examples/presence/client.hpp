#pragma once

#include "limits.hpp"

#include <ulexite/coroutine.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/synchronized.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace presence {

// A connection as something to send to. Lines wait in its outbox, and a coroutine that sends them exists only while
// there are some. So a client to which nothing is sent costs the server a stream and a few words.
class client : public std::enable_shared_from_this<client> {
 public:
  // The coroutines that send are children of `senders`.
  client(ulexite::net::tcp_stream stream, ulexite::task_group& senders, const limits& bounds);

  [[nodiscard]] ulexite::net::tcp_stream& stream() noexcept { return stream_; }

  // Sends a line. Never waits for the client: one that leaves too much unread is dropped, by a reset of its connection.
  // Any fiber.
  void push(std::string_view line);

  // Puts a line into the outbox. Only for the coroutine that reads this client's commands: it calls send_outbox before
  // it reads the next ones, and so has few replies to keep.
  void reply(std::string_view line);

  // Sends what is in the outbox. Throws as co_write does, timed_out if the client does not take it in time.
  [[nodiscard]] ulexite::task<> send_outbox();

  // Clients that were dropped because they did not read.
  static inline std::atomic<std::uint64_t> dropped{0};

 private:
  ulexite::net::tcp_stream stream_;
  ulexite::task_group& senders_;
  const limits& bounds_;
  ulexite::synchronized<std::string> outbox_;  // if it is not empty, a coroutine is under way that will take all of it
  ulexite::mutex sending_;                     // locked while something is written, so that lines stay whole
};

}  // namespace presence
