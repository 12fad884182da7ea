#pragma once

// A log that delays no fiber. A separate thread writes it. Lines that are not read in time are dropped, and counted.
//
// spdlog's other loggers write in the calling thread, and hold a std::mutex. With a slow disk, or a pipe that is not
// read, they would block one worker after the other, with all of its fibers.

#include <fcntl.h>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace examples {

// Writes texts, and waits for their reader up to a limit. For a plain thread, because it blocks.
class bounded_output {
 public:
  using clock = std::chrono::steady_clock;

  // Shares the open file of `fd`, and does not change it. Throws std::system_error.
  explicit bounded_output(int fd) : bounded_output(own(fd), "cannot write to descriptor " + std::to_string(fd)) {}
  // Appends to a file. Makes the file's folder if it is missing. Throws std::system_error naming the file.
  explicit bounded_output(const std::filesystem::path& path)
      : bounded_output(opened(path), "cannot append to \"" + path.string() + '"') {}
  bounded_output(const bounded_output&) = delete;
  bounded_output& operator=(const bounded_output&) = delete;
  ~bounded_output() { ::close(fd_); }

  // Writes all of `text`. False if the reader has closed, or has not made room before the limit, or the disk is full.
  // Only a file's disk may take longer than the limit.
  bool write(std::string_view text) {
    while (!text.empty()) {
      if (!await_room()) return false;
      const ssize_t done = is_socket_ ? ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                      : ::write(fd_, text.data(), text.size());
      if (done >= 0)
        text.remove_prefix(static_cast<std::size_t>(done));
      else if (errno != EINTR && errno != EAGAIN)
        return false;
    }
    return true;
  }

  // From now on writes wait at most until `end`. Any thread.
  void end_at(clock::time_point end) { end_.store(end, std::memory_order_relaxed); }  // await_room checks again soon

 private:
  bounded_output(int fd, const std::string& failure) : fd_(fd) {
    struct stat about{};
    if (fd < 0 || ::fstat(fd, &about) != 0) throw std::system_error(errno, std::system_category(), failure);
    is_socket_ = S_ISSOCK(about.st_mode);
  }

  // Other processes may share the open file, so its O_NONBLOCK flag must not change. A pipe or a terminal can be opened
  // once more. A file must not be, because it would be written from its beginning.
  static int own(int fd) {
    struct stat about{};
    if (::fstat(fd, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) {
      const std::string path = "/proc/self/fd/" + std::to_string(fd);
      const int again = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
      if (again >= 0) return again;
    }
    return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  }

  static int opened(const std::filesystem::path& path) {
    std::error_code ignored;  // without the folder the open fails, and reports it
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
  }

  bool await_room() {
    for (pollfd room{fd_, POLLOUT, 0};;) {
      const bool over = clock::now() >= end_.load(std::memory_order_relaxed);  // a limit, at most 50 ms old
      if (::poll(&room, 1, over ? 0 : 50) > 0) return true;
      if (over) return false;
    }
  }

  int fd_;
  bool is_socket_ = false;
  std::atomic<clock::time_point> end_{clock::time_point::max()};
};

// A logger of spdlog over such an output. Make it after stop_signals: its thread must not take the signals.
class bounded_log {
 public:
  // `pattern` is spdlog's. Throws std::system_error as bounded_output does.
  template <class Where>
  bounded_log(const std::string& name, const Where& where, std::string pattern,
              spdlog::pattern_time_type time = spdlog::pattern_time_type::local)
      : sink_(std::make_shared<output_sink>(where)),
        writer_(std::make_shared<spdlog::details::thread_pool>(4096, 1)),  // lines, threads
        logger_(std::make_shared<spdlog::async_logger>(name, sink_, writer_,
                                                       spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_pattern(std::move(pattern), time);
  }
  bounded_log(const bounded_log&) = delete;
  bounded_log& operator=(const bounded_log&) = delete;
  ~bounded_log() { finish(); }

  // Its functions copy a line into a queue. They hold a std::mutex only for the copy, and never over a suspension. When
  // the queue is full the oldest lines are lost. Any fiber.
  [[nodiscard]] const std::shared_ptr<spdlog::async_logger>& logger() const noexcept { return logger_; }

  // Writes the remaining lines, and returns the number of lost lines. Blocks the thread during this time, with a slow
  // reader for up to a second. Nothing may be logged after it.
  std::size_t finish() {
    if (!writer_) return lost_;
    sink_->output.end_at(bounded_output::clock::now() + std::chrono::seconds(1));
    const std::size_t overrun = writer_->overrun_counter();
    writer_.reset();  // waits for the thread
    return lost_ = overrun + sink_->lost;
  }

 private:
  // Only the log's thread uses it; it has ended when `lost` is read.
  struct output_sink final : spdlog::sinks::base_sink<spdlog::details::null_mutex> {
    template <class Where>
    explicit output_sink(const Where& where) : output(where) {}
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      if (!output.write({line.data(), line.size()})) ++lost;
    }
    void flush_() override {}

    bounded_output output;
    std::size_t lost = 0;
  };

  std::shared_ptr<output_sink> sink_;
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::async_logger> logger_;
  std::size_t lost_ = 0;
};

// Prints a program's last message on standard output, which may be a log that is not read. std::printf would block
// there, at the latest in exit.
inline void say_at_the_end(std::string text, std::size_t lost_lines) try {
  if (lost_lines > 0) text += std::to_string(lost_lines) + " lines of the log were lost\n";
  bounded_output out(STDOUT_FILENO);
  out.end_at(bounded_output::clock::now() + std::chrono::seconds(1));
  out.write(text);
} catch (const std::system_error&) {  // it is closed
}

}  // namespace examples
