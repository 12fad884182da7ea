#pragma once

// The part of a tls_stream that knows OpenSSL's objects, and nothing of waiting.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <ulexite/base/nul.hpp>
#include <ulexite/interop/tls_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ulexite::detail {

// A connection's TLS state, with the ciphertext that has arrived and that must be sent.
class tls_session {
 public:
  // Throws std::system_error.
  tls_session(SSL_CTX* context, const std::string* server_name) : ssl_(SSL_new(context)) {
    BIO* const bio = ssl_ ? BIO_new(method()) : nullptr;
    if (!bio) throw std::system_error(last_tls_error(), "ulexite: making a TLS session");
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (server_name) {
      expect(*server_name);
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }

  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }

  // Adds ciphertext that has arrived. Throws std::bad_alloc. Then it is lost, so the connection has failed.
  void feed(const char* data, std::size_t size) try { in_.append(data, size); } catch (const std::bad_alloc&) {
    failure_ = std::make_error_code(std::errc::not_enough_memory);
    throw;
  }
  // The bytes of ciphertext to send.
  [[nodiscard]] std::size_t output_size() const noexcept { return out_.size(); }
  // Moves the ciphertext to send into `into`, which is empty. False if there is none.
  [[nodiscard]] bool take_output(std::string& into) noexcept {
    into.swap(out_);
    return !into.empty();
  }

  // Whether a call of OpenSSL that returned `result` needs more ciphertext. If not, sets `error` if the call failed; no
  // error means the peer's end.
  [[nodiscard]] bool wants_more(int result, std::error_code& error) {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ: return true;
      case SSL_ERROR_ZERO_RETURN: return false;
      default: error = failure_ = last_tls_error(); return false;
    }
  }
  // The TLS error that has ended the connection, if any.
  [[nodiscard]] std::error_code failure() const noexcept { return failure_; }

 private:
  struct deleter {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };

  // The name or the numeric address that the peer's certificate must be made out to.
  void expect(const std::string& name) {
    X509_VERIFY_PARAM* const checks = SSL_get0_param(ssl_.get());
    // OpenSSL would take spaces and signs in an address, and leave out what follows a space.
    if (name.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos &&
        X509_VERIFY_PARAM_set1_ip_asc(checks, name.c_str()) == 1)
      return;
    ERR_clear_error();
    // RFC 9525: a certificate's subject is no name of a server, only its alternative names are.
    X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const std::string host(name, 0, name.ends_with('.') ? name.size() - 1 : name.size());
    if (!is_host_name(host) ||
        SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 const_cast<char*>(host.c_str())) != 1 ||
        SSL_set1_host(ssl_.get(), host.c_str()) != 1) {
      ERR_clear_error();
      throw std::invalid_argument("tls_stream: " + shown(name) + " is not the name of a server");
    }
  }

  // Labels with dots between them. To OpenSSL a dot in front would mean any host of that domain.
  static bool is_host_name(const std::string& name) noexcept {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return !name.empty() && !name.starts_with('.') && !name.ends_with('.') && name.find("..") == std::string::npos &&
           name.find_first_not_of(letters) == std::string::npos;
  }

  // Buffers of ours instead of OpenSSL's memory BIOs, because those keep the memory of their largest content.
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ulexite tls_session");
      BIO_meth_set_read(fresh, [](BIO* bio, char* data, int size) { return of(bio).give(bio, data, size); });
      BIO_meth_set_write(fresh, [](BIO* bio, const char* data, int size) { return of(bio).take(data, size); });
      BIO_meth_set_ctrl(fresh, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH; });
      return fresh;
    }();
    return made;
  }
  static tls_session& of(BIO* bio) noexcept { return *static_cast<tls_session*>(BIO_get_data(bio)); }

  int give(BIO* bio, char* data, int size) noexcept {
    BIO_clear_retry_flags(bio);
    const std::size_t length = std::min(in_.size() - read_, static_cast<std::size_t>(std::max(size, 0)));
    if (length == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(data, in_.data() + read_, length);
    read_ += length;
    if (read_ == in_.size()) {
      read_ = 0;
      in_ = {};  // an idle connection keeps no buffer
    }
    return static_cast<int>(length);
  }
  int take(const char* data, int size) noexcept try {
    out_.append(data, static_cast<std::size_t>(std::max(size, 0)));
    return size;
  } catch (const std::bad_alloc&) {
    return -1;
  }

  std::unique_ptr<SSL, deleter> ssl_;
  std::string in_, out_;  // ciphertext
  std::size_t read_ = 0;  // of in_
  std::error_code failure_;
};

}  // namespace ulexite::detail
