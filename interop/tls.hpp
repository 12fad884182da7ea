#pragma once

// TLS over any stream, by OpenSSL. A program that includes this links libssl and libcrypto; the library itself does
// not.
//
//   ulexite::tls_context trusted = ulexite::tls_context::client();
//   auto tcp = ulexite::net::tcp_stream::connect(ulexite::net::address("example.org", 443), {.timeout = 10s});
//   ulexite::tls_stream secure(tcp, trusted, "example.org");
//   secure.write("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n");
//   ulexite::net::buffered_reader in(secure);
//
// Errors: those of the stream below, and codes of tls_category(). After an error of TLS every operation fails with it
// again. After a connection was cut, only reads fail. Operations have two forms as in net/tcp.hpp. The time limits are
// those of the stream below. An expiry or a cancellation loses nothing: the next call continues.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <ulexite/base/error.hpp>
#include <ulexite/interop/tls_context.hpp>
#include <ulexite/interop/tls_session.hpp>
#include <ulexite/net/buffered.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite {

// A TLS stream over another stream. `Stream` is tcp_stream, or any class with read_some and write_some in both forms.
// The stream below must outlive this one, and nothing else may use it during this time. One fiber or thread may read
// while another writes. The first operation makes the handshake, unless handshake() was called before. An idle
// connection keeps some 17 KiB; 14 of them are OpenSSL's. To this add the stream below, and its fiber. OpenSSL runs on
// the stack of the worker's thread (on_thread_stack), so the fiber's stack stays small. Therefore your callbacks that
// OpenSSL calls must not wait.
template <class Stream>
  requires net::readable_stream<Stream> && net::writable_stream<Stream>
class tls_stream {
 public:
  // The server's side, with a certificate in `context`. Throws std::system_error.
  tls_stream(Stream& under, const tls_context& context)
      : under_(under), session_(std::make_unique<detail::tls_session>(context.native_handle(), nullptr)) {}
  // The client's side. The peer's certificate must have `server_name`, a host name or a numeric address, among its
  // alternative names; its subject does not count. A host name is sent to the server. A dot at its end is left out.
  // Throws std::system_error, and std::invalid_argument if `server_name` is not a name: "https://example.org",
  // "example.org:443" and ".example.org" are none.
  tls_stream(Stream& under, const tls_context& context, const std::string& server_name)
      : under_(under), session_(std::make_unique<detail::tls_session>(context.native_handle(), &server_name)) {}
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  // Makes the handshake: agrees with the peer on keys, and checks its certificate. Waits for the peer. A cancellation
  // point. Does nothing after a handshake has succeeded.
  void handshake(std::error_code& error) {
    error.clear();
    if (done_.load(std::memory_order_acquire)) return;  // pairs with the store below
    const auto turn = detail::acquire(handshake_, error);
    while (!error && !done_.load(std::memory_order_relaxed)) {  // written with handshake_ held
      bool more, agreed;
      {
        const std::lock_guard lock(state_);
        if ((error = session_->failure())) return;
        ERR_clear_error();
        const int result = on_thread_stack([this] { return SSL_do_handshake(session_->ssl()); });
        more = result != 1 && session_->wants_more(result, error);
        agreed = result == 1;
        const bool ended = (SSL_get_shutdown(session_->ssl()) & SSL_RECEIVED_SHUTDOWN) != 0;
        if (result != 1 && ended && !error) fail_cut(error);
      }
      std::error_code ignored;
      flush(error ? ignored : error);  // an alert, too
      if (error) return;
      // Only now, because the peer waits for the last message of this side.
      if (agreed) done_.store(true, std::memory_order_release);  // pairs with the load above
      if (more && !receive(error) && !error) fail_cut(error);
      if (error) return;
    }
  }
  void handshake() {
    throwing("the handshake of TLS", [&](std::error_code& error) { handshake(error); });
  }

  // Reads the available bytes: at least one, at most `size`. Waits while there are none. Returns the number of bytes, 0
  // when the peer has ended TLS (or for size 0). A connection that ends before the peer has ended TLS is an error,
  // because an attacker may have cut it.
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
    for (handshake(error); !error && size > 0;) {
      std::size_t got = 0;
      {
        const std::lock_guard lock(state_);
        if ((error = session_->failure())) break;
        ERR_clear_error();
        const int result = on_thread_stack([&] { return SSL_read_ex(session_->ssl(), data, size, &got); });
        if (result == 1) return got;
        if (!session_->wants_more(result, error)) break;
      }
      send_answers(error);
      if (!error && !receive(error) && !error) fail_cut(error);
    }
    if (error) {
      std::error_code ignored;
      flush_unless_busy(ignored);  // an alert
    }
    return 0;
  }
  std::size_t read_some(void* data, std::size_t size) {
    std::size_t got = 0;
    throwing("reading from TLS", [&](std::error_code& error) { got = read_some(data, size, error); });
    return got;
  }

  // Whether a read needs no more bytes of the stream below, because decrypted bytes, an end or an error are there. Also
  // true before the handshake, which the read makes, and if the read has answers to send. Waits only while a writer
  // computes. For the reader.
  [[nodiscard]] bool is_readable() {
    if (!done_.load(std::memory_order_acquire)) return true;  // pairs with the store of handshake()
    const std::lock_guard lock(state_);
    if (session_->failure()) return true;
    ERR_clear_error();
    char first;
    std::size_t got = 0;
    std::error_code error;
    const int result = on_thread_stack([&] { return SSL_peek_ex(session_->ssl(), &first, sizeof first, &got); });
    return result == 1 || !session_->wants_more(result, error) || session_->output_size() > 0;
  }

  // Takes up to 16 KiB, and sends it. Returns the number of bytes taken. If an error keeps this call from sending them,
  // the next call sends them or fails with the same error. While a read has only a part of a message that changes the
  // keys, it takes nothing, with the error resource_unavailable_try_again: try again after that read.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error) {
    std::size_t taken = 0;
    handshake(error);
    if (!error && size == 0) flush(error);
    if (error || size == 0) return 0;
    send_after([&] { taken = encrypt(data, size, error); }, error);
    return taken;
  }
  std::size_t write_some(const void* data, std::size_t size) {
    std::size_t taken = 0;
    throwing("writing to TLS", [&](std::error_code& error) { taken = write_some(data, size, error); });
    return taken;
  }

  // Writes everything. Returns the number of bytes taken, when the stream below has them all; fewer than `size` only on
  // an error.
  std::size_t write(const void* data, std::size_t size, std::error_code& error) {
    std::size_t done = 0;
    error.clear();
    while (!error && done < size) done += write_some(static_cast<const char*>(data) + done, size - done, error);
    if (!error) flush(error);
    return done;
  }
  void write(const void* data, std::size_t size) {
    throwing("writing to TLS", [&](std::error_code& error) { write(data, size, error); });
  }
  std::size_t write(std::string_view text, std::error_code& error) { return write(text.data(), text.size(), error); }
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Sends what earlier calls have taken. Fails with the error that kept them from sending it.
  void flush(std::error_code& error) {
    error.clear();
    {
      const auto turn = detail::acquire(sending_, error);
      if (!error) send_all(error);
    }
    if (!error) flush_unless_busy(error);  // what a reader leaves to this caller meanwhile
  }
  void flush() {
    throwing("writing to TLS", [&](std::error_code& error) { flush(error); });
  }

  // Tells the peer that nothing more comes (close_notify). Reads continue. The stream below stays open.
  void shutdown_write(std::error_code& error) {
    handshake(error);
    if (error) return;
    const auto notify = [&] {
      const std::lock_guard lock(state_);
      if ((error = session_->failure())) return;
      if (SSL_get_shutdown(session_->ssl()) & SSL_SENT_SHUTDOWN) return;  // another call would drop received data
      ERR_clear_error();
      on_thread_stack([this] { static_cast<void>(SSL_shutdown(session_->ssl())); });
      ERR_clear_error();
    };
    send_after(notify, error);
    if (!error) flush(error);
  }
  void shutdown_write() {
    throwing("ending TLS", [&](std::error_code& error) { shutdown_write(error); });
  }

  // The ALPN protocol that both sides agreed on; empty if none. Call it after the handshake.
  [[nodiscard]] std::string_view alpn() const noexcept {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(session_->ssl(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  // The TLS version, such as "TLSv1.3". Call it after the handshake.
  [[nodiscard]] std::string_view version() const noexcept { return SSL_get_version(session_->ssl()); }
  // On the server's side, the name that the client has asked for; empty if none. Call it after the handshake.
  [[nodiscard]] std::string_view server_name() const noexcept {
    const char* const name = SSL_get_servername(session_->ssl(), TLSEXT_NAMETYPE_host_name);
    return name ? name : "";
  }
  // OpenSSL's object, for other features: certificates, ciphers, sessions. Do not use it during an operation.
  [[nodiscard]] SSL* native_handle() const noexcept { return session_->ssl(); }
  // The stream below.
  [[nodiscard]] Stream& next_layer() const noexcept { return under_; }

 private:
  static constexpr std::size_t small_read = 512, large_read = 32'768, most_answers = 65'536;

  // Reads ciphertext; false at the end of the stream below. An idle connection waits with a small buffer.
  bool receive(std::error_code& error) {
    std::size_t got;
    if (reads_ == small_read) {
      char room[small_read];
      got = receive_into(room, error);
    } else {
      const std::unique_ptr<char[]> room(new char[reads_]);
      got = receive_into(room.get(), error);
    }
    if (error) return false;
    reads_ = got == reads_ ? std::min(8 * reads_, large_read) : small_read;
    return got > 0;
  }
  std::size_t receive_into(char* room, std::error_code& error) {
    const std::size_t got = under_.read_some(room, reads_, error);
    if (error) return 0;
    const std::lock_guard lock(state_);
    session_->feed(room, got);
    return got;
  }

  // Makes a record of up to 16 KiB of `data`. Returns the number of bytes taken.
  std::size_t encrypt(const void* data, std::size_t size, std::error_code& error) {
    const std::lock_guard lock(state_);
    if (!(error = session_->failure()) && SSL_get_shutdown(session_->ssl()) & SSL_SENT_SHUTDOWN)
      error = std::make_error_code(std::errc::broken_pipe);  // OpenSSL's error would end reads too
    if (error) return 0;
    ERR_clear_error();
    std::size_t taken = 0;
    const std::size_t most = std::min<std::size_t>(size, 16'384);
    const int result = on_thread_stack([&] { return SSL_write_ex(session_->ssl(), data, most, &taken); });
    if (result == 1) return taken;
    // The reader may have taken in a part of a message that changes the keys.
    if (session_->wants_more(result, error)) error = std::make_error_code(std::errc::resource_unavailable_try_again);
    if (!error) error = std::make_error_code(std::errc::broken_pipe);
    return 0;
  }

  // Sends the ciphertext that is there, then what `make` adds. If that fails to be sent, the next call reports it. One
  // caller at a time, so that the ciphertext stays in order. A reader does not find what `make` adds: it would send it,
  // and wait for the peer meanwhile. If both sides did so, neither would read. Only after a failed send a reader finds
  // the rest. It then tries to send the rest before it receives, because its answers come behind.
  template <class Make>
  void send_after(Make&& make, std::error_code& error) {
    std::error_code of_next;
    {
      const auto turn = detail::acquire(sending_, error);
      if (!error) send_all(error);
      if (error) return;
      make();
      send_all(of_next);
    }
    if (!of_next) flush_unless_busy(of_next);  // what a reader has left to this caller meanwhile
  }
  // For a reader, which must not wait for a writer that waits for the peer. The writer then sends the reader's
  // ciphertext.
  void flush_unless_busy(std::error_code& error) {
    while (!error && output_size() > 0) {
      const std::unique_lock turn(sending_, std::try_to_lock);
      if (!turn) return;
      send_all(error);
    }
  }
  // Sends a reader's answers. If that fails, the read goes on, because the peer's data may still arrive; the next write
  // reports the error. A peer that asks for many answers and reads none is refused, because they fill the memory.
  void send_answers(std::error_code& error) {
    std::error_code unsent;
    flush_unless_busy(unsent);
    if (output_size() > most_answers) error = std::make_error_code(std::errc::no_buffer_space);
  }
  // Called with sending_ held. Ciphertext that an error leaves is sent first by the next call.
  void send_all(std::error_code& error) {
    for (;;) {
      if (chunk_.empty()) {
        const std::lock_guard lock(state_);
        left_over_ = false;
        if (!session_->take_output(chunk_)) return;
      }
      const std::size_t done = under_.write_some(chunk_.data(), chunk_.size(), error);
      chunk_.erase(0, done);
      if (chunk_.empty()) chunk_ = {};  // gives its memory back
      if (!error) continue;
      const std::lock_guard lock(state_);
      left_over_ = !chunk_.empty();
      return;
    }
  }
  [[nodiscard]] std::size_t output_size() {
    const std::lock_guard lock(state_);
    return session_->output_size() + (left_over_ ? 1 : 0);
  }

  // The stream below has ended before TLS did, or the peer has ended TLS during the handshake. After the handshake only
  // reads fail, because written data may still arrive.
  static void fail_cut(std::error_code& error) {
    error =
        std::error_code(static_cast<int>(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_UNEXPECTED_EOF_WHILE_READING)), tls_category());
  }

  template <class Operation>
  void throwing(const char* what, Operation&& operation) {
    std::error_code error;
    operation(error);
    if (!error) return;
    std::string text = std::string("ulexite: ") + what;
    const long verified = SSL_get_verify_result(session_->ssl());
    if (error.category() == tls_category() && verified != X509_V_OK)
      text += std::string(": ") + X509_verify_cert_error_string(verified);
    if (error.category() == error_category()) detail::throw_cancelled(error);
    throw std::system_error(error, text);
  }

  Stream& under_;
  mutex state_;  // guards the content of session_, and left_over_
  std::unique_ptr<detail::tls_session> session_;
  mutex handshake_;                // held during the handshake
  std::atomic<bool> done_{false};  // State: the handshake is over; set once, with handshake_ held
  mutex sending_;                  // held by the sender; guards chunk_
  std::string chunk_;
  bool left_over_ = false;          // chunk_ has bytes that no sender will send
  std::size_t reads_ = small_read;  // the reader's
};

}  // namespace ulexite
