#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <ulexite/base/standard.hpp>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite {

// The category of the errors of OpenSSL; the values are those of ERR_get_error. A connection that ends without the end
// of TLS equals std::errc::connection_aborted, because its peer, or the network, has cut it.
inline const std::error_category& tls_category() noexcept {
  struct category final : std::error_category {
    [[nodiscard]] const char* name() const noexcept override { return "tls"; }
    [[nodiscard]] std::string message(int value) const override {
      const char* const reason = ERR_reason_error_string(static_cast<unsigned>(value));
      return reason ? reason : "error " + std::to_string(value);
    }
    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
      const auto code = static_cast<unsigned long>(value);
      if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return std::errc::connection_aborted;
      return {value, *this};
    }
  };
  static const category only;
  return only;
}

namespace detail {

// The oldest error of OpenSSL's queue for this thread. Empties the queue.
inline std::error_code last_tls_error() noexcept {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return std::make_error_code(std::errc::protocol_error);
  if (ERR_SYSTEM_ERROR(code)) return {ERR_GET_REASON(code), std::system_category()};
  return {static_cast<int>(code), tls_category()};
}

}  // namespace detail

// The settings that TLS connections share: certificates, trusted authorities, protocols. TLS 1.2 is the oldest version.
// Set it up before the first connection. Then any number of fibers and threads may make connections with it at the same
// time. Connections keep the parts that they need. Movable. Its functions block while they read files, and throw
// std::system_error that names the file.
class tls_context {
 public:
  // For clients. A server needs a certificate that the system trusts and that is issued for its name.
  [[nodiscard]] static tls_context client() {
    tls_context made(TLS_client_method());
    if (SSL_CTX_set_default_verify_paths(made.native_handle()) != 1) fail("reading the certificates that are trusted");
    SSL_CTX_set_verify(made.native_handle(), SSL_VERIFY_PEER, nullptr);
    return made;
  }
  // For servers. `chain` has the server's certificate first, `key` its private key, both in PEM. Clients need no
  // certificate.
  [[nodiscard]] static tls_context server(const std::filesystem::path& chain, const std::filesystem::path& key) {
    tls_context made(TLS_server_method());
    made.use_certificate(chain, key);
    // Otherwise OpenSSL refuses each client that must show a certificate and resumes a session.
    constexpr unsigned char name[] = "ulexite";
    SSL_CTX_set_session_id_context(made.native_handle(), name, sizeof name - 1);
    return made;
  }

  // Shows this certificate to peers; a client needs one only if the server asks for it.
  void use_certificate(const std::filesystem::path& chain, const std::filesystem::path& key) {
    if (SSL_CTX_use_certificate_chain_file(context_.get(), chain.c_str()) != 1)
      fail("reading the certificates in \"" + chain.string() + '"');
    if (SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
      fail("reading the key in \"" + key.string() + '"');
    if (SSL_CTX_check_private_key(context_.get()) != 1)
      fail("using the key in \"" + key.string() + "\" for the certificate in \"" + chain.string() + '"');
  }
  // Also trusts the certificates in a file, in PEM.
  void trust(const std::filesystem::path& certificates) {
    if (SSL_CTX_load_verify_locations(context_.get(), certificates.c_str(), nullptr) != 1)
      fail("reading the certificates in \"" + certificates.string() + '"');
  }
  // For servers: clients must have a certificate that is trusted.
  void require_client_certificates() noexcept {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  // For clients: accepts any certificate. This protects from eavesdroppers, but not from an attacker that poses as the
  // server.
  void trust_everything() noexcept { SSL_CTX_set_verify(context_.get(), SSL_VERIFY_NONE, nullptr); }

  // Sets the protocols that ALPN offers or accepts, the best first, such as {"h2", "http/1.1"}. A server takes the
  // first of its protocols that the client has, and refuses a client that has none of them. Throws
  // std::invalid_argument for an empty or too long name.
  void set_alpn(std::initializer_list<std::string_view> protocols) {
    auto wire = std::make_unique<std::string>();
    for (const std::string_view each : protocols) {
      if (each.empty() || each.size() > 255)
        throw std::invalid_argument("tls_context::set_alpn: \"" + std::string(each) + "\" is no protocol");
      *wire += static_cast<char>(each.size());
      *wire += each;
    }
    SSL_CTX_set_alpn_protos(context_.get(), reinterpret_cast<const unsigned char*>(wire->data()),
                            static_cast<unsigned>(wire->size()));
    std::string* const old = alpn_of(context_.get());
    if (SSL_CTX_set_ex_data(context_.get(), alpn_index(), wire.get()) != 1) fail("keeping the protocols of ALPN");
    static_cast<void>(wire.release());
    delete old;
    SSL_CTX_set_alpn_select_cb(context_.get(), &select_protocol, nullptr);
  }

  // OpenSSL's object, for other settings. Valid as long as the context.
  [[nodiscard]] SSL_CTX* native_handle() const noexcept { return context_.get(); }

 private:
  struct deleter {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  };

  explicit tls_context(const SSL_METHOD* method) : context_(SSL_CTX_new(method)) {
    if (!context_) fail("making a TLS context");
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context_.get(),
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }

  [[noreturn]] static void fail(const std::string& what) {
    throw std::system_error(detail::last_tls_error(), "ulexite: " + what);
  }
  // OpenSSL's object owns the protocols, as on the wire: connections keep that object, but not this one.
  static int alpn_index() noexcept {
    static const int made = SSL_CTX_get_ex_new_index(
        0, nullptr, nullptr, nullptr,
        [](void*, void* wire, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<std::string*>(wire); });
    return made;
  }
  static std::string* alpn_of(const SSL_CTX* context) noexcept {
    return static_cast<std::string*>(SSL_CTX_get_ex_data(context, alpn_index()));
  }
  static int select_protocol(SSL* connection, const unsigned char** chosen, unsigned char* size,
                             const unsigned char* offered, unsigned offered_size, void*) {
    const std::string& own = *alpn_of(SSL_get_SSL_CTX(connection));
    unsigned char* found = nullptr;
    const int how = SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(own.data()),
                                          static_cast<unsigned>(own.size()), offered, offered_size);
    *chosen = found;
    return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  }

  std::unique_ptr<SSL_CTX, deleter> context_;
};

}  // namespace ulexite
