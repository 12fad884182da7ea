#include "session.hpp"

#include "../empty_lines.hpp"
#include "incoming.hpp"
#include "outgoing.hpp"
#include "refusal.hpp"
#include "respond.hpp"
#include "wire.hpp"

#include <ulexite/runtime/this_fiber.hpp>

#include <boost/beast/core/flat_buffer.hpp>

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>

namespace http_server {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class session {
 public:
  session(ulexite::net::tcp_stream& tcp, const std::stop_token& closing, service& shared)
      : tcp_(tcp),
        closing_(closing),
        shared_(shared),
        peer_(shared.log.is_on() ? peer_of(tcp) : ""),
        buffer_(shared.bounds.header_size + incoming::block_size) {}

  void run() {
    open();
    while (await_request() && serve_one()) {
    }
    wire_->finish(1s);
  }

 private:
  static std::string peer_of(const ulexite::net::tcp_stream& tcp);
  void open();
  bool await_request();
  bool serve_one();
  void answer(incoming& in, outgoing& out);
  void log(const incoming& in, const outgoing& out, steady_clock::time_point begun);

  ulexite::net::tcp_stream& tcp_;
  const std::stop_token& closing_;
  service& shared_;
  const std::string peer_;
  std::unique_ptr<wire> wire_;
  // Bytes that were read, and belong to the next request. Without a maximum it would hold all of a chunk's extension,
  // or of a trailer, because Beast does not limit these.
  boost::beast::flat_buffer buffer_;
};

std::string session::peer_of(const ulexite::net::tcp_stream& tcp) try {
  return tcp.remote_endpoint().str();
} catch (const std::system_error&) {
  return "-";  // it has closed already
}

void session::open() {
  const std::stop_callback give_up(closing_, [this]() noexcept { tcp_.shutdown_read(); });
  tcp_.expires_after(shared_.bounds.handshake_time);
  wire_ = shared_.tls ? encrypted(tcp_, *shared_.tls) : bare(tcp_);
}

// Called at the stop: ends an idle read, and returns whether it did. If the first bytes of a request have arrived, but
// the fiber has not run since, the request must be read too.
bool end_idle_read(ulexite::net::tcp_stream& tcp) noexcept {
  char first;
  if (::recv(tcp.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return false;
  tcp.shutdown_read();
  return true;
}

// Waits, idle, for the first bytes of a request. They may have arrived with the last request.
bool session::await_request() {
  if (examples::skip_empty_lines(buffer_)) return true;
  if (buffer_.capacity() >= incoming::block_size) buffer_.shrink_to_fit();  // a body has made it large
  bool ended = false;  // set by the callback; the destructor waits for its end
  boost::system::error_code error;
  {
    const std::stop_callback end_read(closing_, [&]() noexcept { ended = end_idle_read(tcp_); });
    tcp_.expires_after(shared_.bounds.idle_time);
    do {
      buffer_.commit(wire_->read_some(buffer_.prepare(4096), error));
    } while (!error && !examples::skip_empty_lines(buffer_) && !closing_.stop_requested());
  }
  if (error) ulexite::this_fiber::check();
  // A request that arrived at this moment is not begun, because its rest could not be read.
  return examples::skip_empty_lines(buffer_) && !ended;
}

// True: another request may follow.
bool session::serve_one() {
  const auto begun = steady_clock::now();
  incoming in(*wire_, buffer_, shared_.bounds);
  outgoing out(*wire_, shared_.bounds);
  try {
    answer(in, out);
  } catch (...) {
    log(in, out, begun);
    throw;
  }
  log(in, out, begun);
  return out.keep_alive();
}

void session::answer(incoming& in, outgoing& out) try {
  in.read_header();
  if (closing_.stop_requested()) in.make_last();
  respond(in, out, shared_.files);
} catch (const refusal& refused) {
  if (out.begun()) throw std::system_error(std::make_error_code(std::errc::connection_aborted), refused.what());
  out.send(to_unread(refused.status, refused.what(), in.header().method() == boost::beast::http::verb::head));
}

void session::log(const incoming& in, const outgoing& out, steady_clock::time_point begun) {
  if (out.begun()) shared_.requests.fetch_add(1, std::memory_order_relaxed);  // a counter
  shared_.log.write({.peer = peer_,
                     .method = in.method(),
                     .target = in.target(),
                     .user_agent = in.field(boost::beast::http::field::user_agent),
                     .status = out.status(),
                     .bytes = out.bytes(),
                     .duration = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begun)});
}

}  // namespace

void serve(ulexite::net::tcp_stream& tcp, const std::stop_token& closing, service& shared) {
  shared.connections.fetch_add(1, std::memory_order_relaxed);  // a counter
  session(tcp, closing, shared).run();
}

}  // namespace http_server
