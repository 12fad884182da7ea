#include "wire.hpp"

#include "../last_words.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/interop/tls.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <boost/asio/error.hpp>

#include <sys/socket.h>

#include <stdexcept>
#include <system_error>

namespace http_server {
namespace {

using boost::system::error_code;

// Of the library. A client that cuts the connection without the goodbyes of TLS has ended it, as far as requests go.
error_code translated(const std::error_code& error) {
  if (!error) return {};
  if (error.category() == ulexite::tls_category()) return boost::asio::error::eof;
  if (error.category() == ulexite::error_category()) return boost::asio::error::operation_aborted;
  return {error.value(), boost::system::system_category()};
}

class bare_wire final : public wire {
 public:
  explicit bare_wire(ulexite::net::tcp_stream& tcp) : wire(tcp), stream_(tcp) {}

  std::size_t read_some(boost::asio::mutable_buffer into, error_code& error) override {
    return stream_.read_some(into, error);
  }
  void write(std::string_view bytes) override {
    std::error_code error;
    tcp_.write(bytes.data(), bytes.size(), error);
    if (error) fail(translated(error));
  }
  [[nodiscard]] bool sends_files() const noexcept override { return true; }
  // Without a wait, as far as the system takes it. The write handles the rest, or the error.
  void write_before_file(std::string_view bytes) override {
    const ssize_t sent =
        ::send(tcp_.native_handle(), bytes.data(), bytes.size(), MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (!bytes.empty()) write(bytes);
  }
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size) override {
    std::error_code error;
    const std::size_t sent = tcp_.send_file(file, offset, size, error);
    if (error) fail(translated(error));
    return sent;
  }
  void finish(std::chrono::nanoseconds time) override { examples::deliver_last_words(tcp_, time); }

 private:
  ulexite::asio_stream stream_;
};

class encrypted_wire final : public wire {
 public:
  encrypted_wire(ulexite::net::tcp_stream& tcp, const ulexite::tls_context& tls) : wire(tcp), stream_(tcp, tls) {
    std::error_code error;
    stream_.handshake(error);
    if (error) fail(translated(error));
  }

  std::size_t read_some(boost::asio::mutable_buffer into, error_code& error) override {
    std::error_code failure;
    const std::size_t got = stream_.read_some(into.data(), into.size(), failure);
    error = translated(failure);
    if (!failure && got == 0 && into.size() != 0) error = boost::asio::error::eof;
    return got;
  }
  void write(std::string_view bytes) override {
    std::error_code error;
    stream_.write(bytes, error);
    if (error) fail(translated(error));
  }
  void finish(std::chrono::nanoseconds time) override {
    tcp_.expires_after(time);
    std::error_code ignored;  // the rest is read below
    stream_.shutdown_write(ignored);
    examples::deliver_last_words(tcp_, time);
  }

 private:
  ulexite::tls_stream<ulexite::net::tcp_stream> stream_;
};

}  // namespace

void wire::fail(const error_code& error) {
  ulexite::this_fiber::check();
  throw std::system_error(std::make_error_code(std::errc::connection_aborted), error.message());
}

std::unique_ptr<wire> bare(ulexite::net::tcp_stream& tcp) { return std::make_unique<bare_wire>(tcp); }

std::unique_ptr<wire> encrypted(ulexite::net::tcp_stream& tcp, const ulexite::tls_context& tls) {
  return std::make_unique<encrypted_wire>(tcp, tls);
}

ulexite::tls_context tls_of(const std::string& certificate, const std::string& key) try {
  return ulexite::tls_context::server(certificate, key);
} catch (const std::system_error& error) {
  const bool of_the_key = std::string_view(error.what()).find("the key in") != std::string_view::npos;
  throw std::runtime_error(
      (of_the_key ? "cannot use the private key \"" + key : "cannot use the certificate \"" + certificate) +
      "\": " + error.code().message());
}

}  // namespace http_server
