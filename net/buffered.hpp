#pragma once

// Buffers between a program and a stream: fewer system calls, and reading by lines.
//
//   net::buffered_reader in(stream);
//   net::buffered_writer out(stream);
//   while (const auto line = in.read_line()) {
//     out.write(*line);
//     out.write("\n");
//     if (in.buffered().empty()) out.flush();  // nothing more to answer at the moment
//   }
//
// They work over any stream with read_some or write_some in the two forms of net/tcp.hpp: tcp_stream, the ends of
// pipes, or a class of yours. They do not own the stream, which must outlive them. Every operation has two forms: one
// throws, the other sets a std::error_code. The errors are the stream's. It waits, and is a cancellation point, only
// where it uses the stream. An error, an expiry or a cancellation loses nothing: received bytes stay in the reader's
// buffer, unsent bytes in the writer's. The next call continues there.
//
// Thread rule: one fiber or thread at a time may use a buffer. A reader and a writer over the same stream are
// independent.

#include <ulexite/base/standard.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::net {

// A stream for a buffered_reader. read_some returns at least one byte, or 0 at the end of the stream.
template <class Stream>
concept readable_stream = requires(Stream& from, void* data, std::size_t size, std::error_code& error) {
  { from.read_some(data, size) } -> std::same_as<std::size_t>;
  { from.read_some(data, size, error) } -> std::same_as<std::size_t>;
};

// A stream for a buffered_writer. write_some returns the number of bytes that it took, at least one.
template <class Stream>
concept writable_stream = requires(Stream& to, const void* data, std::size_t size, std::error_code& error) {
  { to.write_some(data, size) } -> std::same_as<std::size_t>;
  { to.write_some(data, size, error) } -> std::same_as<std::size_t>;
};

}  // namespace ulexite::net

namespace ulexite::detail {

// Bytes that were read and not used yet, in one block that grows.
class read_buffer {
 public:
  explicit read_buffer(std::size_t capacity) noexcept : initial_capacity_(std::max<std::size_t>(capacity, 1)) {}

  [[nodiscard]] std::string_view bytes() const noexcept { return {block_.get() + begin_, end_ - begin_}; }

  // Drops the first `size` bytes. A buffer that has grown and is empty returns to its first size.
  void consume(std::size_t size) noexcept {
    begin_ += size;
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    if (capacity_ <= initial_capacity_) return;
    grown_ = std::move(block_);  // the caller's view of it stays valid until the next call
    capacity_ = 0;
  }

  // Room behind the bytes: at least one byte. Throws std::bad_alloc, and then nothing has changed.
  [[nodiscard]] std::span<char> room() {
    grown_.reset();
    if (end_ == capacity_ && begin_ > 0) {
      std::memmove(block_.get(), block_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == capacity_) {
      const std::size_t larger = std::max(initial_capacity_, 2 * capacity_);
      std::unique_ptr<char[]> block(new char[larger]);
      if (end_ > 0) std::memcpy(block.get(), block_.get(), end_);
      block_ = std::move(block);
      capacity_ = larger;
    }
    return {block_.get() + end_, capacity_ - end_};
  }

  // Adds the first `size` bytes of room(), which the caller has filled.
  void commit(std::size_t size) noexcept { end_ += size; }

 private:
  const std::size_t initial_capacity_;
  std::unique_ptr<char[]> block_;
  std::unique_ptr<char[]> grown_;  // an old block that the last result may refer to
  std::size_t capacity_ = 0;       // of block_
  std::size_t begin_ = 0;          // bytes: block_[begin_, end_)
  std::size_t end_ = 0;
};

}  // namespace ulexite::detail

namespace ulexite::net {

// Reads from a stream through a buffer. Its memory is allocated by the first read; it grows up to the limit of
// read_until, and shrinks again when it is empty. Every view that it returns is valid until the next call.
template <readable_stream Stream>
class buffered_reader {
 public:
  // The default limit of a line's length, in bytes.
  static constexpr std::size_t default_limit = 64 * 1024;

  // `capacity` is the number of bytes that it requests from the stream in one read.
  explicit buffered_reader(Stream& from, std::size_t capacity = 8192) noexcept : from_(from), buffer_(capacity) {}
  buffered_reader(const buffered_reader&) = delete;
  buffered_reader& operator=(const buffered_reader&) = delete;

  // Reads the next line, and returns it without its end, "\n" or "\r\n". nullopt at the end of the stream; the last
  // line may have no end. A line that has more than `limit` bytes with its end is std::errc::message_size. It stays in
  // the buffer: a call with a larger limit reads it. Throws std::system_error, and std::bad_alloc.
  [[nodiscard]] std::optional<std::string_view> read_line(std::size_t limit = default_limit) {
    return line_of(until("\n", limit));
  }
  [[nodiscard]] std::optional<std::string_view> read_line(std::size_t limit, std::error_code& error) {
    return line_of(until("\n", limit, error));
  }
  [[nodiscard]] std::optional<std::string_view> read_line(std::error_code& error) {
    return read_line(default_limit, error);
  }

  // Reads up to and including the next `delimiter`, which may have several bytes. At the end of the stream returns the
  // rest, without a delimiter; nullopt if nothing is left. The limit, in bytes with the delimiter, works as for
  // read_line. Throws std::invalid_argument for an empty delimiter.
  [[nodiscard]] std::optional<std::string_view> read_until(std::string_view delimiter,
                                                           std::size_t limit = default_limit) {
    return until(delimiter, limit);
  }
  [[nodiscard]] std::optional<std::string_view> read_until(std::string_view delimiter, std::size_t limit,
                                                           std::error_code& error) {
    return until(delimiter, limit, error);
  }

  // Works as the stream's read_some, but takes the bytes of the buffer first.
  std::size_t read_some(void* data, std::size_t size) { return some(data, size); }
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) { return some(data, size, error); }

  // Reads exactly `size` bytes, or fewer at the end of the stream. On an error `data` has the bytes that arrived before
  // it, and the error_code form returns their number.
  std::size_t read(void* data, std::size_t size) { return exactly(data, size); }
  std::size_t read(void* data, std::size_t size, std::error_code& error) { return exactly(data, size, error); }

  // Reads everything up to the end of the stream. More than `limit` bytes are std::errc::message_size; they stay in the
  // buffer.
  [[nodiscard]] std::string read_all(std::size_t limit) { return all(limit); }
  [[nodiscard]] std::string read_all(std::size_t limit, std::error_code& error) { return all(limit, error); }

  // The bytes in the buffer. Does not read. Never waits.
  [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.bytes(); }
  // Whether the buffer has bytes. Never waits.
  [[nodiscard]] bool is_readable() const noexcept { return !buffered().empty(); }
  // The stream below.
  [[nodiscard]] Stream& next_layer() const noexcept { return from_; }
  // Waits until the buffer has at least `size` bytes, and returns all its bytes. Fewer only at the end of the stream.
  [[nodiscard]] std::string_view peek(std::size_t size = 1) { return ahead(size); }
  [[nodiscard]] std::string_view peek(std::size_t size, std::error_code& error) { return ahead(size, error); }
  // Skips the first `size` bytes of buffered(), or all of it if it has fewer. Never waits.
  void consume(std::size_t size) noexcept { buffer_.consume(std::min(size, buffered().size())); }

 private:
  // `error` is nothing in the throwing forms, and one std::error_code in the others.

  // False at the end of the stream, and on an error.
  bool fill(auto&... error) {
    const std::span<char> room = buffer_.room();
    const std::size_t got = from_.read_some(room.data(), room.size(), error...);
    buffer_.commit(got);
    return got > 0;
  }

  [[nodiscard]] static bool failed(const auto&... error) noexcept { return (false || ... || bool(error)); }

  static void refuse(std::errc which, const std::string& what, auto&... error) {
    if constexpr (sizeof...(error) == 0)
      throw std::system_error(std::make_error_code(which), "ulexite: " + what);
    else
      ((error = std::make_error_code(which)), ...);
  }

  [[nodiscard]] std::string_view take(std::size_t size) noexcept {
    const std::string_view taken = buffered().substr(0, size);
    buffer_.consume(size);
    return taken;
  }

  [[nodiscard]] std::optional<std::string_view> until(std::string_view delimiter, std::size_t limit, auto&... error) {
    (error.clear(), ...);
    if (delimiter.empty()) throw std::invalid_argument("buffered_reader::read_until: the delimiter is empty");
    for (std::size_t searched = 0;;) {
      const std::string_view have = buffered();
      const std::size_t found = have.find(delimiter, searched);
      const std::size_t size = found == have.npos ? have.size() : found + delimiter.size();
      if (size > limit) {
        refuse(std::errc::message_size,
               "reading up to a delimiter: not found in the first " + std::to_string(limit) + " bytes", error...);
        return std::nullopt;
      }
      if (found != have.npos) return take(size);
      searched = have.size() - std::min(have.size(), delimiter.size() - 1);
      if (fill(error...)) continue;
      if (failed(error...) || buffered().empty()) return std::nullopt;
      return take(buffered().size());
    }
  }

  [[nodiscard]] static std::optional<std::string_view> line_of(std::optional<std::string_view> read) noexcept {
    if (read && read->ends_with('\n')) {
      read->remove_suffix(1);
      if (read->ends_with('\r')) read->remove_suffix(1);
    }
    return read;
  }

  std::size_t some(void* data, std::size_t size, auto&... error) {
    (error.clear(), ...);
    if (buffered().empty()) {
      if (size >= large_read || size == 0) return from_.read_some(data, size, error...);  // a copy would cost more
      if (!fill(error...)) return 0;
    }
    const std::string_view taken = take(std::min(size, buffered().size()));
    taken.copy(static_cast<char*>(data), taken.size());
    return taken.size();
  }

  std::size_t exactly(void* data, std::size_t size, auto&... error) {
    (error.clear(), ...);
    for (std::size_t got = 0;;) {
      const std::size_t more = got < size ? some(static_cast<char*>(data) + got, size - got, error...) : 0;
      if (more == 0) return got;
      got += more;
    }
  }

  [[nodiscard]] std::string all(std::size_t limit, auto&... error) {
    (error.clear(), ...);
    while (buffered().size() <= limit) {
      if (fill(error...)) continue;
      if (failed(error...)) return {};
      return std::string(take(buffered().size()));
    }
    refuse(std::errc::message_size, "reading to the end: more than " + std::to_string(limit) + " bytes", error...);
    return {};
  }

  [[nodiscard]] std::string_view ahead(std::size_t size, auto&... error) {
    (error.clear(), ...);
    while (buffered().size() < size && fill(error...)) {
    }
    return buffered();
  }

  static constexpr std::size_t large_read = 4096;

  Stream& from_;
  detail::read_buffer buffer_;
};

// Collects small writes, and sends them together when the buffer is full, or by flush. The destructor must not wait, so
// it drops bytes that were not flushed.
template <writable_stream Stream>
class buffered_writer {
 public:
  // `capacity` is the number of bytes that it collects.
  explicit buffered_writer(Stream& to, std::size_t capacity = 8192) noexcept
      : to_(to), capacity_(std::max<std::size_t>(capacity, 1)) {}
  buffered_writer(const buffered_writer&) = delete;
  buffered_writer& operator=(const buffered_writer&) = delete;

  // Takes all of the data, and waits where the buffer is full. The error_code form returns the number of bytes that it
  // took, less than `size` only on an error. Bytes that were taken are sent by a later call. Throws std::system_error,
  // and std::bad_alloc; then an unknown part of the data was taken.
  void write(const void* data, std::size_t size) { put(data, size); }
  std::size_t write(const void* data, std::size_t size, std::error_code& error) { return put(data, size, error); }
  void write(std::string_view text) { put(text.data(), text.size()); }
  std::size_t write(std::string_view text, std::error_code& error) { return put(text.data(), text.size(), error); }
  [[deprecated("use write(data, size)")]] void write(std::span<const std::byte> data) { put(data.data(), data.size()); }

  // As write. For templates that expect a stream.
  std::size_t write_some(const void* data, std::size_t size) { return put(data, size); }
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error) { return put(data, size, error); }

  // Sends the content of the buffer, and waits as often as needed. Then calls flush of the stream below, if it has one.
  void flush() { send_all(); }
  void flush(std::error_code& error) { send_all(error); }

  // Bytes that were taken and not sent. Never waits.
  [[nodiscard]] std::size_t unsent() const noexcept { return bytes_.size() - sent_; }

 private:
  [[nodiscard]] static bool failed(const auto&... error) noexcept { return (false || ... || bool(error)); }

  std::size_t put(const void* data, std::size_t size, auto&... error) {
    (error.clear(), ...);
    const auto* const from = static_cast<const char*>(data);
    for (std::size_t done = 0;;) {
      const std::size_t left = size - done;
      if (unsent() == 0 && left >= capacity_) {  // a copy would cost more
        done += to_.write_some(from + done, left, error...);
      } else {
        const std::size_t part = std::min(left, capacity_ - unsent());
        bytes_.erase(0, std::exchange(sent_, 0));  // otherwise failing flushes would let it grow
        if (bytes_.capacity() == 0) bytes_.reserve(capacity_);
        bytes_.append(from + done, part);
        done += part;
        if (done == size) return done;
        send(error...);
      }
      if (done == size || failed(error...)) return done;
    }
  }

  // A tls_stream takes data and may fail to send them. The next call reports that.
  void send_all(auto&... error) {
    send(error...);
    if constexpr (requires { to_.flush(error...); })
      if (!failed(error...)) to_.flush(error...);
  }
  void send(auto&... error) {
    (error.clear(), ...);
    while (unsent() > 0 && !failed(error...)) {
      sent_ += to_.write_some(bytes_.data() + sent_, unsent(), error...);
      if (unsent() > 0) continue;
      bytes_.clear();
      sent_ = 0;
    }
  }

  Stream& to_;
  const std::size_t capacity_;
  std::string bytes_;
  std::size_t sent_ = 0;  // of bytes_, which a failed flush leaves in place
};

}  // namespace ulexite::net
