#pragma once

// Makes a tcp_stream a synchronous stream of Boost.Asio. Boost.Beast's http and websocket, and
// boost::asio::ssl::stream, work on it in a fiber. No io_context runs. The library itself does not need Boost.Asio;
// this header does.
//
//   ulexite::asio_stream stream(tcp);
//   boost::beast::http::read(stream, buffer, request);
//   boost::asio::ssl::stream<ulexite::asio_stream> secure(ulexite::asio_stream(tcp), context);
//   boost::beast::websocket::stream<ulexite::asio_stream> socket(ulexite::asio_stream(tcp, guard));  // read and
//   written
//
// A Boost error that leaves a handler of tcp_listener::serve is not a std::system_error. So serve's default report
// cannot recognise errors that clients cause: catch Boost's errors in the handler. http::read_some of an eager parser
// waits for more than the chunk in hand. To forward a body as it arrives, do not make the parser eager.
//
// Give each buffer that Beast reads into a maximum: `flat_buffer buffer(64 * 1024)`. header_limit and body_limit bound
// neither the extension of a chunk nor a trailer, so without a maximum one request may fill the memory. Beyond it the
// read ends with http::error::buffer_overflow.
//
// Boost's asynchronous operations do not work on it, and Boost's own time-outs do nothing. Use the tcp_stream's expiry.
// For asynchronous operations on sockets of Asio there is <ulexite/interop/asio_fiber.hpp>.

#include <ulexite/base/error.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/mutex.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

namespace boost::beast {
enum class role_type;  // defined by <boost/beast/core/role.hpp>
}

namespace ulexite {

// A stream for Boost.Asio and Boost.Beast over a tcp_stream, which must outlive it. Copies refer to the same
// tcp_stream. Waits and threads: as tcp_stream.
//
// The forms with an error code report a cancellation as boost::asio::error::operation_aborted, and the end of the
// stream as eof. They report an expiry as timed_out, and other errors by their number. The throwing forms throw
// boost::system::system_error, and operation_cancelled for a cancellation. Boost's own functions (beast::http::read and
// others) call the forms with an error code. On a cancellation they throw a boost::system::system_error of
// operation_aborted, which a task_group does not treat as a cancellation. So give them an error code, and call
// this_fiber::check() when they report one.
class asio_stream {
 public:
  using lowest_layer_type = asio_stream;
  using executor_type = boost::asio::io_context::executor_type;

  // A stream over `stream`, which must outlive it.
  explicit asio_stream(net::tcp_stream& stream) noexcept : stream_(&stream) {}

  // For a beast::websocket::stream that one fiber reads and others write. Each fiber must hold `guard` whenever it
  // calls the websocket; `guard` must outlive all of them. A read unlocks `guard` while it waits for the peer, and
  // locks it again. Only one fiber may read. It must also make the call of websocket's close(), because close() reads
  // the answer.
  //
  // Without a guard, no fiber may write to a websocket while another reads it, because a read writes too: it answers
  // pings and closes. With a guard, a write begins and ends while a read waits for bytes in read_some. Beast allows
  // that, because its asynchronous form allows a write during async_read, which waits at the same places with the same
  // state in the stream. A write keeps `guard` locked, so frames stay whole. But then no fiber reads while a write
  // waits for the peer to read. If both ends work like this, both may write more than the connection holds and wait for
  // each other. So limit the time of writes (tcp_stream::expires_after).
  asio_stream(net::tcp_stream& stream, mutex& guard) noexcept : stream_(&stream), guard_(&guard) {}

  // The stream below.
  [[nodiscard]] net::tcp_stream& stream() const noexcept { return *stream_; }
  // Returns this stream. Asio requires the function.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }
  // The executor of an io_context that never runs. Layers above make timers with it, but do not use these timers here.
  [[nodiscard]] executor_type get_executor() const { return inert_context().get_executor(); }

  // Reads at least one byte, as tcp_stream::read_some does; waits while there is none.
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers, boost::system::error_code& error) {
    const vectors into = vectors::of<boost::asio::mutable_buffer>(buffers);
    std::error_code failure;
    const std::size_t got = read_unguarded(into.span(), failure);
    error = translated(failure);
    if (!failure && got == 0 && into.total != 0) error = boost::asio::error::eof;
    return got;
  }
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers) {
    boost::system::error_code error;
    const std::size_t got = read_some(buffers, error);
    throw_if(error, "read_some");
    return got;
  }

  // Writes at least one byte, as tcp_stream::write_some does; waits while the buffer is full.
  template <class ConstBuffers>
  std::size_t write_some(const ConstBuffers& buffers, boost::system::error_code& error) {
    const vectors from = vectors::of<boost::asio::const_buffer>(buffers);
    std::error_code failure;
    const std::size_t sent = stream_->write_some(from.span(), failure);
    error = translated(failure);
    return sent;
  }
  template <class ConstBuffers>
  std::size_t write_some(const ConstBuffers& buffers) {
    boost::system::error_code error;
    const std::size_t sent = write_some(buffers, error);
    throw_if(error, "write_some");
    return sent;
  }

 private:
  // The first buffers of a sequence that are not empty. A partial read or write may leave out the others.
  struct vectors {
    std::array<iovec, 64> items;
    std::size_t count = 0;
    std::size_t total = 0;

    template <class Buffer, class Buffers>
    static vectors of(const Buffers& buffers) {
      vectors made;
      const auto end = boost::asio::buffer_sequence_end(buffers);
      for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end && made.count < made.items.size(); ++at) {
        const Buffer each(*at);
        if (each.size() == 0) continue;
        made.items[made.count++] = {const_cast<void*>(static_cast<const void*>(each.data())), each.size()};
        made.total += each.size();
      }
      return made;
    }
    [[nodiscard]] std::span<const iovec> span() const noexcept { return {items.data(), count}; }
  };

  std::size_t read_unguarded(std::span<const iovec> buffers, std::error_code& failure) {
    struct unguarded {
      explicit unguarded(mutex* which) : guard(which) {
        if (guard) guard->unlock();
      }
      ~unguarded() {
        if (guard) guard->lock();
      }
      mutex* guard;
    };
    const unguarded while_it_waits(guard_);
    return stream_->read_some(buffers, failure);
  }

  static boost::asio::io_context& inert_context() {
    static boost::asio::io_context context(1);
    return context;
  }

  static boost::system::error_code translated(const std::error_code& error) {
    if (!error) return {};
    if (error.category() == error_category()) return boost::asio::error::operation_aborted;
    return {error.value(), boost::system::system_category()};
  }

  static void throw_if(const boost::system::error_code& error, const char* operation) {
    if (error == boost::asio::error::operation_aborted) detail::throw_cancelled();
    if (error) throw boost::system::system_error(error, operation);
  }

  net::tcp_stream* stream_;
  mutex* guard_ = nullptr;
};

// Ends the sending side. Beast finds it by the type of its argument, and calls it at the end of a websocket connection.
inline void teardown(boost::beast::role_type, asio_stream& stream, boost::system::error_code& error) {
  std::error_code failure;
  stream.stream().shutdown_write(failure);
  error = {failure.value(), boost::system::system_category()};
}
// As above, for Beast's asynchronous form. Calls `handler` before it returns.
template <class Handler>
void async_teardown(boost::beast::role_type role, asio_stream& stream, Handler&& handler) {
  boost::system::error_code error;
  teardown(role, stream, error);
  std::forward<Handler>(handler)(error);
}
// Closes the stream below.
inline void beast_close_socket(asio_stream& stream) { stream.stream().close(); }

}  // namespace ulexite
