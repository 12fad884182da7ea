#pragma once

// Handlers of gRPC as fibers: see grpc.hpp.
//
// Each function makes a reactor, for the method of a CallbackService to return, and starts a fiber that calls `body`.
// What `body` returns is the status of the call; rpc::status_of says which status an exception is. `body` is destroyed
// before the call ends, so it may refer to the request, the response and the context. The fiber has the deadline of the
// call. It is asked to stop when the call is cancelled or its client is gone. If the runtime refuses the fiber, above
// max_fibers, the status is RESOURCE_EXHAUSTED, and `body` is not called.
//
// `in` is a runtime or another context with a spawn (concurrent_context, strand ...). Never waits. Any thread. The
// server must be shut down before the runtime ends (rpc::shutdown).

#include <ulexite/interop/grpc_status.hpp>
#include <ulexite/interop/grpc_stream.hpp>
#include <ulexite/runtime/join_handle.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/sync/blocking.hpp>

#include <grpcpp/server.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ulexite::rpc {
namespace detail {

template <class Body, class... Stream>
concept handler_body = std::is_invocable_r_v<::grpc::Status, std::decay_t<Body>&, Stream&...>;

// A reactor with a fiber. gRPC reacts only after the method has returned it, so fiber_ is there. The fiber's last use
// of it is Finish; then OnDone deletes it.
template <class Reactor>
class handler : public Reactor {
 public:
  explicit handler(::grpc::CallbackServerContext& context) noexcept : call_(context) {}

  template <class Context, class Body>
  void start(Context& in, const std::source_location& where, Body body) {
    try {
      fiber_ = in.spawn(
          {.name = "rpc", .where = where},
          ulexite::detail::awaited_call{[this, body = std::move(body)]() mutable { finish(answer(std::move(body))); }});
    } catch (...) {
      finish(status_of(std::current_exception()));
    }
  }

 protected:
  ::grpc::CallbackServerContext& call_;

 private:
  // Destroys the body, too.
  template <class Body>
  ::grpc::Status answer(Body&& given) noexcept {
    try {
      Body body(std::move(given));
      std::optional<deadline_scope> limit;
      if (const auto deadline = call_.deadline(); deadline != deadline.max()) limit.emplace(absolute_timeout(deadline));
      return body();
    } catch (...) {
      return status_of(std::current_exception());
    }
  }
  void finish(::grpc::Status status) {
    on_thread_stack([&] { this->Finish(std::move(status)); });
  }
  void OnCancel() final { fiber_.request_stop(); }
  void OnDone() final { delete this; }

  join_handle<> fiber_;
};

template <class Request>
using reading_handler = reads<handler<::grpc::ServerReadReactor<Request>>, Request>;
template <class Response>
using writing_handler = writes<handler<::grpc::ServerWriteReactor<Response>>, Response>;
template <class Request, class Response>
using reading_writing_handler = reads<writes<handler<::grpc::ServerBidiReactor<Request, Response>>, Response>, Request>;

// Makes the streams, whose friend it is.
struct server {
  // Starts a handler whose body uses a Stream.
  template <class Stream, class Context, class Body>
  static auto* serve(Context& in, ::grpc::CallbackServerContext& context, const std::source_location& where,
                     Body&& body) {
    using reactor = typename Stream::handler;
    auto made = std::make_unique<reactor>(context);
    made->start(in, where, [made = made.get(), body = std::decay_t<Body>(std::forward<Body>(body))]() mutable {
      Stream stream(*made);
      return body(stream);
    });
    return made.release();
  }
};

}  // namespace detail

// The requests of a client, for the body of serve_reader. One fiber at a time.
template <class Request>
class server_reader {
 public:
  // Waits for the next request. False when the client has ended its writes, or is gone. A cancellation point that
  // cancels the call.
  bool read(Request& into) { return call_.read(into); }

 private:
  friend detail::server;
  using handler = detail::reading_handler<Request>;
  explicit server_reader(handler& call) noexcept : call_(call) {}

  handler& call_;
};

// The way to a client, for the body of serve_writer. One fiber at a time.
template <class Response>
class server_writer {
 public:
  // Sends a response. Waits until the client's window has room. False if the client is gone, or has cancelled the call.
  // A cancellation point that cancels the call.
  bool write(const Response& message, ::grpc::WriteOptions options = {}) { return call_.write(message, options); }

 private:
  friend detail::server;
  using handler = detail::writing_handler<Response>;
  explicit server_writer(handler& call) noexcept : call_(call) {}

  handler& call_;
};

// Both, for the body of serve_reader_writer. One fiber may read while another writes.
template <class Request, class Response>
class server_reader_writer {
 public:
  // As server_reader::read.
  bool read(Request& into) { return call_.read(into); }
  // As server_writer::write.
  bool write(const Response& message, ::grpc::WriteOptions options = {}) { return call_.write(message, options); }

 private:
  friend detail::server;
  using handler = detail::reading_writing_handler<Request, Response>;
  explicit server_reader_writer(handler& call) noexcept : call_(call) {}

  handler& call_;
};

// A call of one request and one response: calls body().
template <class Context, detail::handler_body Body>
::grpc::ServerUnaryReactor* serve_unary(Context& in, ::grpc::CallbackServerContext& context, Body&& body,
                                        std::source_location where = std::source_location::current()) {
  auto made = std::make_unique<detail::handler<::grpc::ServerUnaryReactor>>(context);
  made->start(in, where, std::decay_t<Body>(std::forward<Body>(body)));
  return made.release();
}

// A call with a stream of requests: calls body(server_reader<Request>&), which sets the response.
template <class Request, class Context, detail::handler_body<server_reader<Request>> Body>
::grpc::ServerReadReactor<Request>* serve_reader(Context& in, ::grpc::CallbackServerContext& context, Body&& body,
                                                 std::source_location where = std::source_location::current()) {
  return detail::server::serve<server_reader<Request>>(in, context, where, std::forward<Body>(body));
}

// A call with a stream of responses: calls body(server_writer<Response>&).
template <class Response, class Context, detail::handler_body<server_writer<Response>> Body>
::grpc::ServerWriteReactor<Response>* serve_writer(Context& in, ::grpc::CallbackServerContext& context, Body&& body,
                                                   std::source_location where = std::source_location::current()) {
  return detail::server::serve<server_writer<Response>>(in, context, where, std::forward<Body>(body));
}

// A call with streams in both directions: calls body(server_reader_writer<Request, Response>&).
template <class Request, class Response, class Context,
          detail::handler_body<server_reader_writer<Request, Response>> Body>
::grpc::ServerBidiReactor<Request, Response>* serve_reader_writer(
    Context& in, ::grpc::CallbackServerContext& context, Body&& body,
    std::source_location where = std::source_location::current()) {
  return detail::server::serve<server_reader_writer<Request, Response>>(in, context, where, std::forward<Body>(body));
}

// Ends a server: it takes no further calls, and those under way have `grace`; then they are cancelled, and their
// handlers asked to stop. Waits until all handlers have ended, also those that do not stop. Not a cancellation point.
// In fibers it runs on a thread that may block (ulexite::blocking).
inline void shutdown(::grpc::Server& server, std::chrono::nanoseconds grace) {
  using clock = std::chrono::system_clock;
  constexpr std::chrono::hours a_year(24 * 365);  // so that the sum does not overflow
  const shield until_the_end;
  blocking([&] {
    server.Shutdown(clock::now() +
                    std::chrono::ceil<clock::duration>(std::min<std::chrono::nanoseconds>(grace, a_year)));
    server.Wait();
  });
}

}  // namespace ulexite::rpc
