#pragma once

// Reads and writes files, pipes and terminals, above all the process's standard streams, while other fibers run.
//
//   ux::net::buffered_reader in(ux::os::standard_input());
//   while (const auto line = in.read_line()) ux::os::standard_output().write("got " + std::string(*line) + "\n");
//
// Operations that wait are cancellation points. They have two forms as in net/tcp.hpp, without an expiry; a
// deadline_scope limits the time. Other processes may share an open file, so its O_NONBLOCK flag is never changed.
// Instead a pipe or a terminal is opened once more, and each call on a socket has the flag not to block. A regular file
// is used as in os/file.hpp: on the worker if that needs no wait, and otherwise on the pool.

#include <ulexite/base/standard.hpp>
#include <ulexite/os/calls/nowait_support.hpp>
#include <ulexite/sync/mutex.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::os {

// The common part of input_stream and output_stream.
class byte_stream {
 public:
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  // Its name in messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The descriptor that it uses and keeps.
  [[nodiscard]] int native_handle() const noexcept { return fd_; }

 protected:
  byte_stream(int fd, std::string name, detail::access how);  // takes `fd` over; -1: closed
  ~byte_stream();
  // A descriptor for the same pipe or terminal, or file. `own`: its open description is not shared.
  struct opening {
    int fd;
    bool own;
  };
  byte_stream(opening made, std::string name, detail::access how);
  static opening opened_again(int fd, int flags) noexcept;
  static int opened(const std::filesystem::path& path, int flags);

  // Makes one call on_file(fd, flags of preadv2) or on_socket(fd) for up to `size` bytes, and repeats it when the
  // descriptor is ready. Returns the call's result.
  template <class OnFile, class OnSocket>
  std::size_t perform(std::size_t size, std::error_code& error, OnFile&& on_file, OnSocket&& on_socket);
  [[nodiscard]] bool is_on_disk() const noexcept { return kind_ == kind::on_disk; }
  [[noreturn]] void fail(std::error_code error, const char* what) const;

 private:
  enum class kind : unsigned char { other, on_disk, socket, pipe };

  int fd_;
  kind kind_ = kind::other;
  bool reads_first_ = false;      // before it waits
  detail::nowait_support calls_;  // on a regular file
  std::string name_;
};

// Reads a file, pipe or terminal from its present position on. One fiber or thread at a time may read.
class input_stream : public byte_stream {
 public:
  // Opens `path`. A read of a named pipe waits for its first writer. The pipe ends when its last writer has closed it.
  // Throws std::system_error.
  explicit input_stream(const std::filesystem::path& path);
  // Uses the open file of the descriptor, and leaves the descriptor open. A named pipe without writers is at its end.
  // Throws std::system_error.
  [[nodiscard]] static input_stream share(int fd, std::string name) { return {fd, std::move(name)}; }

  // Reads the available bytes: at least one, at most `size`. Waits while there are none. Returns the number of bytes, 0
  // at the end. For size 0 it returns 0 without a wait.
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);

 private:
  input_stream(int fd, std::string name);
};

// Writes a file, pipe or terminal at its present position. Any number of fibers and threads may write at the same time:
// the bytes of one write() stay together. A write never raises SIGPIPE: without a reader it fails with broken_pipe.
class output_stream : public byte_stream {
 public:
  // Uses the open file of the descriptor, and leaves the descriptor open. Throws std::system_error.
  [[nodiscard]] static output_stream share(int fd, std::string name) { return {fd, std::move(name)}; }

  // Writes as much as there is room for, at least one byte. Takes at most PIPE_BUF for a pipe, a terminal or another
  // device without blocks. Waits while there is no room. Returns the number of bytes taken.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error);
  std::size_t write_some(const void* data, std::size_t size);

  // Writes everything, and waits as often as needed. Returns the number of bytes written, fewer only on an error.
  std::size_t write(std::string_view text, std::error_code& error);
  void write(std::string_view text);

 private:
  output_stream(int fd, std::string name);
  std::size_t write_in_turn(const char* data, std::size_t size, std::error_code& error);

  mutex turn_;  // held by the writer
};

// The standard streams of the process. Any thread, also while static objects are destroyed. The first call throws
// std::system_error if the descriptor cannot be used.
[[nodiscard]] input_stream& standard_input();
[[nodiscard]] output_stream& standard_output();
[[nodiscard]] output_stream& standard_error();

}  // namespace ulexite::os
