#pragma once

// Bytes from and to files, pipes and terminals, the standard streams of the process above all, while other fibers run.
//
//   ux::net::buffered_reader in(ux::standard_input());
//   while (const auto line = in.read_line()) ux::standard_output().write("got " + std::string(*line) + "\n");
//
// What waits is a cancellation point. Two forms as in net/tcp.hpp, without an expiry; a deadline_scope bounds them.
// Whether a read blocks belongs to what is open, which other processes may share, so that is never changed: a pipe or a
// terminal is opened once more, of a socket each call is made without blocking, and a regular file is used on the pool.

#include <ulexite/base/standard.hpp>
#include <ulexite/sync/mutex.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite {

// The common part of input_stream and output_stream.
class byte_stream {
 public:
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  // What messages call it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The descriptor that it uses, which stays its own.
  [[nodiscard]] int native_handle() const noexcept { return fd_; }

 protected:
  byte_stream(int fd, std::string name);  // takes `fd` over; -1: closed
  ~byte_stream();
  static int opened_again(int fd, int flags) noexcept;
  static int opened(const std::filesystem::path& path, int flags);

  // One call that is made again when there is something to do. Returns what it did.
  template <class OnFile, class OnSocket>
  std::size_t perform(bool reads, std::error_code& error, OnFile&& on_file, OnSocket&& on_socket);
  [[noreturn]] void fail(std::error_code error, const char* what) const;

 private:
  enum class kind : unsigned char { other, regular, socket };

  int fd_;
  kind kind_ = kind::other;
  std::string name_;
};

// A file, pipe or terminal that is read from its present position on. One fiber or thread at a time may read.
class input_stream : public byte_stream {
 public:
  // Opens `path`. Of a named pipe the end comes when its last writer has gone, and at once if there is none. Throws
  // std::system_error.
  explicit input_stream(const std::filesystem::path& path);
  // Uses what the descriptor is open for, and leaves it open. Throws std::system_error.
  [[nodiscard]] static input_stream share(int fd, std::string name) { return {fd, std::move(name)}; }

  // Reads what there is, at least one byte, at most `size`; waits while there is none. Returns the number of bytes, 0 at
  // the end (or for size 0, at once).
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);

 private:
  input_stream(int fd, std::string name);
};

// A file, pipe or terminal that is written at its present position. Any number of fibers and threads may write at the
// same time: what one write() is given stays together. A write never raises SIGPIPE: without a reader it fails with
// broken_pipe.
class output_stream : public byte_stream {
 public:
  // Uses what the descriptor is open for, and leaves it open. Throws std::system_error.
  [[nodiscard]] static output_stream share(int fd, std::string name) { return {fd, std::move(name)}; }

  // Writes what there is room for, at least one byte; waits while there is none. Returns the number of bytes taken.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error);
  std::size_t write_some(const void* data, std::size_t size);

  // Writes everything; waits as often as needed. Returns the number of bytes written, fewer only on an error.
  std::size_t write(std::string_view text, std::error_code& error);
  void write(std::string_view text);

 private:
  output_stream(int fd, std::string name);
  std::size_t write_in_turn(const char* data, std::size_t size, std::error_code& error);

  mutex turn_;  // held by the one that writes
};

// The standard streams of the process. Any thread, also while static objects are destroyed. Throw std::system_error the
// first time if the descriptor cannot be used.
[[nodiscard]] input_stream& standard_input();
[[nodiscard]] output_stream& standard_output();
[[nodiscard]] output_stream& standard_error();

}  // namespace ulexite
