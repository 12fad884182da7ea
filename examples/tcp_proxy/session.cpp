#include "session.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/task_group.hpp>

#include <spdlog/spdlog.h>

#include <array>
#include <cstddef>
#include <string>
#include <system_error>

namespace tcp_proxy {
namespace {

namespace ux = ulexite;
using ux::net::tcp_stream;

// The proxy's only buffer of a direction, which bounds its memory: it reads only when the buffer has been written. A
// slow reader fills the kernel's buffers on both sides, and then TCP stops the sender.
constexpr std::size_t buffer_size = 32 * 1024;

std::string name_of_peer(const tcp_stream& stream) try {
  return stream.remote_endpoint().str();
} catch (const std::system_error&) {
  return "gone";  // reset before it was looked at
}

// The results of one direction. Only its fiber uses them until both have ended.
struct direction {
  std::uint64_t bytes = 0;
  bool ended = false;
};

class session {
 public:
  session(tcp_stream& client, const settings& given, totals& served)
      : given_(given), served_(served), client_(client), peer_(name_of_peer(client)) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();  // logs

  void run();

 private:
  bool connect();
  void pump(tcp_stream& from, tcp_stream& to, direction& done);
  template <class Operation>
  std::size_t while_not_idle(tcp_stream& stream, std::error_code& error, Operation operation);
  [[nodiscard]] ux::steady_clock::time_point idle_at() const;
  void fail(const tcp_stream& where, std::error_code error);

  const settings& given_;
  totals& served_;
  tcp_stream& client_;
  tcp_stream upstream_;
  const std::string peer_;
  const ux::steady_clock::time_point begin_ = ux::steady_clock::now();
  std::atomic<ux::steady_clock::time_point> last_move_{begin_};
  std::atomic<bool> failed_{false};
  std::string reason_;  // written by the fiber that sets failed_, or only by this fiber
  direction to_upstream_, to_client_;
};

session::~session() {
  if (to_upstream_.ended && to_client_.ended) reason_ = "both sides ended";
  if (reason_.empty()) reason_ = "internal error";  // an exception, which serve reports
  const std::chrono::duration<double> lasted = ux::steady_clock::now() - begin_;
  spdlog::info("closed peer={:?} upstream={:?} bytes_to_upstream={} bytes_to_client={} seconds={:.3f} reason={:?}",
               peer_, given_.upstream, to_upstream_.bytes, to_client_.bytes, lasted.count(), reason_);
  served_.connections.fetch_add(1, std::memory_order_relaxed);                                // counter
  served_.bytes.fetch_add(to_upstream_.bytes + to_client_.bytes, std::memory_order_relaxed);  // counter
}

// Each direction has a fiber: this one and a child. They wait for each other only at the end. A direction that fails
// closes both streams, which ends the other.
void session::run() {
  if (!connect()) return;
  last_move_.store(ux::steady_clock::now(), std::memory_order_relaxed);  // before there is a second fiber
  ux::scope([&](ux::task_group& other_direction) {
    other_direction.spawn([&] { pump(upstream_, client_, to_client_); });
    pump(client_, upstream_, to_upstream_);
  });
}

bool session::connect() {
  std::error_code error;
  upstream_ = tcp_stream::connect(given_.upstreams, {.timeout = given_.connect_timeout}, error);
  if (error) reason_ = "cannot connect to the upstream: " + error.message();
  return !error;
}

// Forwards the bytes of `from`, and then its end, while the other direction continues.
void session::pump(tcp_stream& from, tcp_stream& to, direction& done) {
  std::array<char, buffer_size> buffer;
  std::error_code error;
  for (;;) {
    const std::size_t got =
        while_not_idle(from, error, [&] { return from.read_some(buffer.data(), buffer.size(), error); });
    if (error) return fail(from, error);
    if (got == 0) break;
    for (std::size_t sent = 0; sent < got;) {
      const std::size_t more =
          while_not_idle(to, error, [&] { return to.write_some(buffer.data() + sent, got - sent, error); });
      if (error) return fail(to, error);
      sent += more;
      done.bytes += more;
    }
  }
  to.shutdown_write(error);
  if (error) return fail(to, error);
  done.ended = true;
}

// Runs out of time only if the other direction has not moved a byte either.
template <class Operation>
std::size_t session::while_not_idle(tcp_stream& stream, std::error_code& error, Operation operation) {
  // Not ETIMEDOUT of the system, which breaks the connection and says so only once.
  const std::error_code expired = std::make_error_code(std::errc::timed_out);
  for (;;) {
    stream.expires_at(idle_at());
    const std::size_t done = operation();
    if (!error)
      last_move_.store(ux::steady_clock::now(), std::memory_order_relaxed);  // a time, nothing else depends on it
    if (error != expired || ux::steady_clock::now() >= idle_at()) return done;
  }
}

ux::steady_clock::time_point session::idle_at() const {
  if (given_.idle_timeout.count() == 0) return ux::steady_clock::time_point::max();
  return last_move_.load(std::memory_order_relaxed) + given_.idle_timeout;  // a time, nothing else depends on it
}

// The first failure is the reason; the other direction fails as a result. Both sides are reset, so that neither takes a
// cut transfer for a complete one.
void session::fail(const tcp_stream& where, std::error_code error) {
  if (failed_.exchange(true, std::memory_order_relaxed))
    return;  // only the first caller continues; read after the scope's end
  if (error == ux::errc::cancelled)
    reason_ = "stopped";
  else if (error == std::make_error_code(std::errc::timed_out))
    reason_ = "idle";
  else
    reason_ = (&where == &client_ ? "client: " : "upstream: ") + error.message();
  client_.abort();
  upstream_.abort();
}

}  // namespace

void forward(tcp_stream& client, const settings& given, totals& served) { session(client, given, served).run(); }

}  // namespace tcp_proxy
