#include "wire.hpp"

#include "../last_words.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <stdexcept>
#include <system_error>
#include <type_traits>

namespace http_server {
namespace ssl = boost::asio::ssl;
namespace {

using boost::system::error_code;
using ulexite::asio_stream;

template <class Stream>
class wire_over final : public wire {
 public:
  template <class... A>
  explicit wire_over(ulexite::net::tcp_stream& tcp, A&... tls) : wire(tcp), stream_(asio_stream(tcp), tls...) {
    if constexpr (is_tls) {
      error_code error;
      stream_.handshake(ssl::stream_base::server, error);
      if (error) fail(error);
    }
  }

  std::size_t read_some(boost::asio::mutable_buffer into, error_code& error) override {
    return stream_.read_some(into, error);
  }

  void write(std::string_view bytes) override {
    error_code error;
    boost::asio::write(stream_, boost::asio::buffer(bytes), error);
    if (error) fail(error);
  }

  void finish(std::chrono::nanoseconds time) override {
    // Sends our close_notify and waits for the client's. Failure is no matter: the rest is read below.
    if constexpr (is_tls) {
      tcp_.expires_after(time);
      error_code ignored;
      stream_.shutdown(ignored);
    }
    examples::deliver_last_words(tcp_, time);
  }

 private:
  static constexpr bool is_tls = !std::is_same_v<Stream, asio_stream>;

  Stream stream_;
};

}  // namespace

void wire::fail(const error_code& error) {
  ulexite::this_fiber::check();
  throw std::system_error(std::make_error_code(std::errc::connection_aborted), error.message());
}

std::unique_ptr<wire> bare(ulexite::net::tcp_stream& tcp) { return std::make_unique<wire_over<asio_stream>>(tcp); }

std::unique_ptr<wire> encrypted(ulexite::net::tcp_stream& tcp, ssl::context& tls) {
  return std::make_unique<wire_over<ssl::stream<asio_stream>>>(tcp, tls);
}

ssl::context tls_context(const std::string& certificate, const std::string& key) {
  ssl::context made(ssl::context::tls_server);
  made.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                   ssl::context::no_compression | SSL_OP_NO_RENEGOTIATION);
  error_code error;
  made.use_certificate_chain_file(certificate, error);
  if (error) throw std::runtime_error("cannot use the certificate \"" + certificate + "\": " + error.message());
  made.use_private_key_file(key, ssl::context::pem, error);
  if (error) throw std::runtime_error("cannot use the private key \"" + key + "\": " + error.message());
  return made;
}

}  // namespace http_server
