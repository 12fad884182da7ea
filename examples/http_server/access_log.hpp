#pragma once

#include <spdlog/async_logger.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace http_server {

struct access_record {
  std::string_view peer, method, target, user_agent;
  unsigned status;      // 0: the connection was lost before an answer
  std::uint64_t bytes;  // of the answer's body that were sent
  std::chrono::microseconds duration;
};

// One line for each request:
//
//   time=2024-11-06T08:49:37.123Z peer=127.0.0.1:4711 method="GET" target="/" status=200 bytes=14 us=210 agent="curl/7"
//
// A thread of its own writes it. spdlog's other loggers write where they are called, holding a std::mutex: with a slow
// disk or a full pipe each worker in turn would stand still there, and with it all of its fibers. Here write() only
// copies the line into a queue, under a std::mutex that is held for no longer than that, and never across a suspension.
// When the queue is full the oldest lines are lost, and counted: the server must not depend on who reads its log.
class access_log {
 public:
  // Appends to a file, whose folder is made if need be; "-" is standard output, "" is none. Throws spdlog::spdlog_ex
  // naming the file.
  explicit access_log(const std::string& where);
  access_log(const access_log&) = delete;
  access_log& operator=(const access_log&) = delete;
  ~access_log() = default;  // as finish

  // Any fiber. Never waits.
  void write(const access_record& record);

  [[nodiscard]] bool is_on() const noexcept { return logger_ != nullptr; }
  // Writes what is left, and returns how many lines were lost. Blocks the thread meanwhile. Ends the log.
  std::size_t finish();

 private:
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

}  // namespace http_server
