#pragma once

#include <ulexite/interop/tls_context.hpp>
#include <ulexite/net/tcp.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace http_server {

// The bytes of a connection, bare or in TLS. So the code that reads and writes them is written, and compiled, once.
// Time limits are the tcp_stream's. For one fiber.
class wire {
 public:
  explicit wire(ulexite::net::tcp_stream& tcp) : tcp_(tcp) {}
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;
  virtual ~wire() = default;

  [[nodiscard]] ulexite::net::tcp_stream& tcp() const noexcept { return tcp_; }

  // Waits for bytes; 0 with an error only.
  virtual std::size_t read_some(boost::asio::mutable_buffer into, boost::system::error_code& error) = 0;
  // The members that Beast needs in a stream. Its buffers here are one each.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    return read_some(boost::asio::mutable_buffer(*boost::asio::buffer_sequence_begin(buffers)), error);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const std::size_t got = read_some(buffers, error);
    if (error) fail(error);
    return got;
  }

  // Writes all. Throws as fail does.
  virtual void write(std::string_view bytes) = 0;

  // Whether the system can send a file's bytes as they are. Then send_file sends up to `size` of them from `offset` on;
  // returns how many, fewer only at the end of the file. write_before_file writes what leaves together with the file
  // that is sent next. Both throw as write does.
  [[nodiscard]] virtual bool sends_files() const noexcept { return false; }
  virtual void write_before_file(std::string_view bytes) { write(bytes); }
  virtual std::size_t send_file(int, std::uint64_t, std::size_t) { return 0; }

  // Ends the connection in order, after the last answer, so that the client does not lose that: see last_words.hpp. In
  // TLS the goodbyes may take `time` before.
  virtual void finish(std::chrono::nanoseconds time) = 0;

  // Throws operation_cancelled if that is why, else a std::system_error of connection_aborted: the client's affair.
  [[noreturn]] static void fail(const boost::system::error_code& error);

 protected:
  ulexite::net::tcp_stream& tcp_;
};

[[nodiscard]] std::unique_ptr<wire> bare(ulexite::net::tcp_stream& tcp);
// Shakes hands. Throws as wire::fail does when that fails or the stream's expiry is over first.
[[nodiscard]] std::unique_ptr<wire> encrypted(ulexite::net::tcp_stream& tcp, const ulexite::tls_context& tls);

// TLS 1.2 or later, with the certificate chain and the private key of two PEM files. Throws std::runtime_error naming
// the file and what is wrong with it.
[[nodiscard]] ulexite::tls_context tls_of(const std::string& certificate, const std::string& key);

}  // namespace http_server
