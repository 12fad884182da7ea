#pragma once

// TLS for <ulexite/interop/http.hpp>, by <ulexite/interop/tls.hpp>. A program that includes this header links OpenSSL.
//
//   ulexite::http::serve(listener, handler, {.wire = ulexite::http::over_tls(server_context)});
//   ulexite::http::client client({.tls = ulexite::http::over_tls(ulexite::tls_context::client())});

#include <ulexite/interop/http_wire.hpp>
#include <ulexite/interop/tls.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite::detail::http {

// A connection in TLS. The constructor shakes hands: it waits, and throws as tls_stream's handshake does.
class tls_wire final : public ulexite::http::wire {
 public:
  using wire::write;

  // A server's if the name is empty. A client's verifies the server's certificate for that name.
  tls_wire(net::tcp_stream& tcp, const tls_context& context, const std::string& server_name)
      : wire(tcp),
        stream_(server_name.empty() ? std::make_unique<tls_stream<net::tcp_stream>>(tcp, context)
                                    : std::make_unique<tls_stream<net::tcp_stream>>(tcp, context, server_name)) {
    stream_->handshake();
  }

  std::size_t read(void* into, std::size_t size, boost::system::error_code& error) override {
    std::error_code failure;
    const std::size_t got = stream_->read_some(into, size, failure);
    error = translated(failure);
    if (!failure && got == 0) error = boost::asio::error::eof;
    return got;
  }
  [[nodiscard]] bool has_input() override { return stream_->is_readable(); }
  void write(std::string_view bytes, boost::system::error_code& error) override {
    std::error_code failure;
    stream_->write(bytes, failure);
    error = translated(failure);
  }
  void shutdown_write(std::error_code& error) override { stream_->shutdown_write(error); }

  // The stream, for its version, ALPN and certificates.
  [[nodiscard]] tls_stream<net::tcp_stream>& stream() const noexcept { return *stream_; }

 private:
  std::unique_ptr<tls_stream<net::tcp_stream>> stream_;
};

}  // namespace ulexite::detail::http

namespace ulexite::http {

// What makes TLS of a server's, or a client's, connections. The first form shares a context that must live as long; the
// second owns it.
[[nodiscard]] inline wire_maker over_tls(const tls_context& context) {
  return [&context](net::tcp_stream& tcp, const std::string& server_name) {
    return std::make_unique<detail::http::tls_wire>(tcp, context, server_name);
  };
}
// As above.
[[nodiscard]] inline wire_maker over_tls(tls_context&& context) {
  return [owned = std::make_shared<const tls_context>(std::move(context))](net::tcp_stream& tcp,
                                                                           const std::string& server_name) {
    return std::make_unique<detail::http::tls_wire>(tcp, *owned, server_name);
  };
}

}  // namespace ulexite::http
