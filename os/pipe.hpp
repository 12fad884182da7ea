#pragma once

// The ends of pipes.
//
// Operations wait: a fiber is suspended, a plain thread blocks. All operations that wait are cancellation points. Each
// has two forms: one throws std::system_error, one sets a std::error_code, with the codes of net/socket_base.hpp. There
// is no expiry, but a deadline_scope limits the time. A second reader or writer at the same time gets a usage_error.

#include <ulexite/net/socket_base.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite::os {

// An open end of a pipe: the common part of both ends. Movable while it is not in use.
class pipe_end {
 public:
  // Closes this end. The process at the other end reads the end, or its writes fail with broken_pipe. A fiber that
  // waits in an operation on this end is woken, and the operation fails with bad_file_descriptor. A plain thread, or a
  // fiber of another runtime, is not woken. A second close does nothing. Any thread.
  void close() noexcept;
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept { return native_handle() >= 0; }
  // The descriptor, which the object keeps; -1 once closed.
  [[nodiscard]] int native_handle() const noexcept;
  // Gives the descriptor, non-blocking, to the caller; the end is closed. Throws usage_error during an operation.
  [[nodiscard]] int release();

 protected:
  pipe_end() noexcept = default;  // none: every operation fails with bad_file_descriptor
  // Takes over a descriptor and makes it non-blocking. Throws std::system_error, and then leaves it open.
  explicit pipe_end(int fd);

  detail::socket_handle handle_;
};

// The end of a pipe that is read.
class pipe_reader : public pipe_end {
 public:
  // No pipe: every operation fails with bad_file_descriptor.
  pipe_reader() noexcept = default;
  // Takes over a descriptor and makes it non-blocking. Throws std::system_error, and then leaves it open.
  [[nodiscard]] static pipe_reader adopt(int fd) { return pipe_reader(fd); }

  // Reads the available bytes: at least one, at most `size`. Waits while there are none. Returns the number of bytes, 0
  // when every writer has closed. For size 0 it returns 0 without a wait.
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);

  // Reads to the end, which is when every writer has closed. On an error the first form returns the bytes that arrived
  // before it.
  [[nodiscard]] std::string read_all(std::error_code& error);
  [[nodiscard]] std::string read_all();

 private:
  explicit pipe_reader(int fd) : pipe_end(fd) {}
};

// The end of a pipe that is written. A write never raises SIGPIPE: without a reader it fails with broken_pipe.
class pipe_writer : public pipe_end {
 public:
  // No pipe: every operation fails with bad_file_descriptor.
  pipe_writer() noexcept = default;
  // Takes over a descriptor and makes it non-blocking. Throws std::system_error, and then leaves it open.
  [[nodiscard]] static pipe_writer adopt(int fd) { return pipe_writer(fd); }

  // Writes as much as the pipe takes, at least one byte. Waits while the pipe is full. Returns the number of bytes
  // taken.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error);
  std::size_t write_some(const void* data, std::size_t size);

  // Writes everything, and waits as often as needed. Returns the number of bytes written, less than `size` only on an
  // error.
  std::size_t write(const void* data, std::size_t size, std::error_code& error);
  void write(const void* data, std::size_t size);
  std::size_t write(std::string_view text, std::error_code& error) { return write(text.data(), text.size(), error); }
  void write(std::string_view text) { write(text.data(), text.size()); }

 private:
  explicit pipe_writer(int fd) : pipe_end(fd) {}
};

}  // namespace ulexite::os
