#pragma once

// The bytes below HTTP: a connection, bare or, by <ulexite/interop/http_tls.hpp>, in TLS.

#include <ulexite/interop/asio.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite::detail::http {

// The end of a server's connection, which is reported already or is the client's affair. The failure of another
// connection, which a handler uses, may have the same code.
class peer_failed : public std::system_error {
 public:
  explicit peer_failed(const std::string& why)
      : std::system_error(std::make_error_code(std::errc::connection_aborted), why) {}
};

// The end of a limit that begins then. The largest durations have none.
inline steady_clock::time_point end_of(std::chrono::nanoseconds limit,
                                       steady_clock::time_point begun = steady_clock::now()) noexcept {
  constexpr auto never = steady_clock::time_point::max();
  return limit < never - begun ? begun + limit : never;
}

}  // namespace ulexite::detail::http

namespace ulexite::http {

// A synchronous stream of Boost.Asio, so Beast's http and websocket work on it in a fiber. The code above it is
// compiled once for bare connections and TLS. Time limits are those of tcp(). One fiber may read while another writes.
class wire {
 public:
  using lowest_layer_type = wire;
  using executor_type = asio_stream::executor_type;

  // Over a connection, which must outlive it.
  explicit wire(net::tcp_stream& tcp) noexcept : tcp_(tcp) {}
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;
  virtual ~wire() = default;

  // The connection below, for its limits and endpoints.
  [[nodiscard]] net::tcp_stream& tcp() const noexcept { return tcp_; }
  // Returns this stream. Asio requires the function.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  // The executor of an io_context that never runs.
  [[nodiscard]] executor_type get_executor() const { return asio_stream(tcp_).get_executor(); }

  // Reads at least one byte; 0 with an error only, eof at the end.
  virtual std::size_t read(void* into, std::size_t size, boost::system::error_code& error) = 0;
  // Whether the next read needs nothing of the connection below. For the reader.
  [[nodiscard]] virtual bool has_input() { return false; }
  // Writes all.
  virtual void write(std::string_view bytes, boost::system::error_code& error) = 0;
  // Writes all. Throws as fail does.
  void write(std::string_view bytes) {
    boost::system::error_code error;
    write(bytes, error);
    if (error) fail(error);
  }

  // How many bytes of a file a peer must take in the time for a write. At the default least rate they take half of it.
  static constexpr std::size_t file_block = 256 * 1024;
  // Whether the system can send a file's bytes as they are.
  [[nodiscard]] virtual bool sends_files() const noexcept { return false; }
  // Writes what leaves together with the file that is sent next. Throws as write does.
  virtual void write_before_file(std::string_view bytes) { write(bytes); }
  // Sends up to `size` bytes of a file from `offset` on. Returns how many. If there are fewer, the file has ended, or
  // an error came behind file_block or more, and the next call reports it. Throws as write does.
  virtual std::size_t send_file(int, std::uint64_t, std::size_t) { return 0; }

  // Tells the peer that nothing more comes.
  virtual void shutdown_write(std::error_code& error) { tcp_.shutdown_write(error); }

  // Asio's reads and writes of a part, with an error code, or throwing as fail does.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    const auto into = first<boost::asio::mutable_buffer>(buffers);
    error = {};
    return into.size() == 0 ? 0 : read(into.data(), into.size(), error);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const std::size_t got = read_some(buffers, error);
    if (error) fail(error);
    return got;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
    const auto from = first<boost::asio::const_buffer>(buffers);
    error = {};
    if (from.size() > 0) write({static_cast<const char*>(from.data()), from.size()}, error);
    return error ? 0 : from.size();
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    boost::system::error_code error;
    const std::size_t sent = write_some(buffers, error);
    if (error) fail(error);
    return sent;
  }

  // Throws operation_cancelled if that is why, else a std::system_error of connection_aborted: the peer's affair.
  [[noreturn]] static void fail(const boost::system::error_code& error) {
    this_fiber::check();
    throw detail::http::peer_failed(error.message());
  }

 protected:
  // A library's error as Asio's. An error of TLS is connection_aborted: an attacker may have cut the connection, so it
  // must not look like the end of a body.
  static boost::system::error_code translated(const std::error_code& error) {
    if (!error) return {};
    if (error.category() == error_category()) return boost::asio::error::operation_aborted;
    const bool known = error.category() == std::system_category() || error.category() == std::generic_category();
    return {known ? error.value() : ECONNABORTED, boost::system::system_category()};
  }

 private:
  template <class Buffer, class Buffers>
  static Buffer first(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end; ++at)
      if (const Buffer each(*at); each.size() > 0) return each;
    return {};
  }

  net::tcp_stream& tcp_;
};

}  // namespace ulexite::http

namespace ulexite::detail::http {

// A connection without encryption.
class bare_wire final : public ulexite::http::wire {
 public:
  using wire::wire;
  using wire::write;

  std::size_t read(void* into, std::size_t size, boost::system::error_code& error) override {
    std::error_code failure;
    const std::size_t got = tcp().read_some(into, size, failure);
    error = translated(failure);
    if (!failure && got == 0) error = boost::asio::error::eof;
    return got;
  }
  void write(std::string_view bytes, boost::system::error_code& error) override {
    std::error_code failure;
    tcp().write(bytes.data(), bytes.size(), failure);
    error = translated(failure);
  }
  [[nodiscard]] bool sends_files() const noexcept override { return true; }
  // Without a wait, as far as the system takes it. The write handles the rest, or the error.
  void write_before_file(std::string_view bytes) override {
    const ssize_t sent =
        ::send(tcp().native_handle(), bytes.data(), bytes.size(), MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (!bytes.empty()) write(bytes);
  }
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size) override {
    std::error_code error;
    const std::size_t sent = tcp().send_file(file, offset, size, error);
    if (!error || sent >= file_block) return sent;
    // The error is one of the file, which is the program's affair, or of the connection.
    if (char byte; tcp().is_open() && ::pread(file, &byte, 1, static_cast<off_t>(offset + sent)) < 0)
      throw std::system_error(error, "sending a file");
    fail(translated(error));
  }
};

}  // namespace ulexite::detail::http

namespace ulexite::http {

// Makes the stream of a connection. A server's gets an empty name, a client's the name of the server.
using wire_maker = std::function<std::unique_ptr<wire>(net::tcp_stream& tcp, const std::string& server_name)>;

// Ends the sending side. Beast finds it by the type of its argument, and calls it at the end of a websocket connection.
inline void teardown(boost::beast::role_type, wire& stream, boost::system::error_code& error) {
  std::error_code failure;
  stream.shutdown_write(failure);
  error = {};
}
// As above, for Beast's asynchronous form. Calls `handler` before it returns.
template <class Handler>
void async_teardown(boost::beast::role_type role, wire& stream, Handler&& handler) {
  boost::system::error_code error;
  teardown(role, stream, error);
  std::forward<Handler>(handler)(error);
}
// Closes the connection.
inline void beast_close_socket(wire& stream) { stream.tcp().close(); }

}  // namespace ulexite::http
