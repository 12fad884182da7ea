#pragma once

// Calls of gRPC in fibers: see grpc.hpp. They work on plain threads too, and block those.
//
// A call has the deadline of its fiber, unless the context has a nearer one. If the fiber's deadline ends the call, the
// operation throws deadline_exceeded; if the context's own does, the status is DEADLINE_EXCEEDED. All operations here
// are cancellation points that cancel the call: they throw operation_cancelled when gRPC no longer uses the messages,
// which is soon. All other failures are the status of the call.

#include <ulexite/interop/grpc_stream.hpp>
#include <ulexite/sync/event.hpp>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace ulexite::rpc {
namespace detail {

// Gives the call the fiber's deadline, if it is the nearer one.
inline void pass_deadline(::grpc::ClientContext& context) {
  using clock = std::chrono::system_clock;  // of gRPC's deadlines
  const auto deadline = this_fiber::deadline();
  if (!deadline) return;
  // This clock first: if the thread is held up in between, gRPC's deadline is the later one.
  const auto left = std::chrono::ceil<clock::duration>(*deadline - steady_clock::now());
  const auto now = clock::now();
  if (left < context.deadline() - now) context.set_deadline(now + left);
}

// Throws deadline_exceeded if the fiber's deadline has ended the call. gRPC converts it between clocks, and may be
// early by as long as its thread is held up in between. So waits for what is left of the fiber's time, unless that is
// long: then the server has given this status for a reason of its own.
inline void check_deadline(const ::grpc::Status& status) {
  if (status.error_code() != ::grpc::StatusCode::DEADLINE_EXCEEDED) return;
  const auto deadline = this_fiber::deadline();
  if (!deadline || *deadline > steady_clock::now() + std::chrono::milliseconds(100)) return;
  this_fiber::sleep_until(*deadline);
  this_fiber::check();
}

template <class Start>
concept call_start = std::is_invocable_v<Start, std::function<void(::grpc::Status)>>;

// A stream, from the client. A final class calls begin() last in its constructor and leave() first in its destructor,
// because reactions may come in between.
template <class Reactor>
class client_call : public Reactor {
 public:
  explicit client_call(::grpc::ClientContext& context) : call_(context) {}
  client_call(const client_call&) = delete;
  client_call& operator=(const client_call&) = delete;

  ::grpc::Status finish() {
    release();
    await_reaction(done_, call_);
    check_deadline(status_);
    return status_;
  }

 protected:
  // start(reactor) calls the stub's method.
  template <class Start>
  void begin(Start&& start) {
    this_fiber::check();
    pass_deadline(call_);
    on_thread_stack([&] {
      std::forward<Start>(start)(static_cast<Reactor*>(this));
      this->AddHold();  // operations begin outside of reactions
      held_ = true;
      this->StartCall();
    });
  }

  // Cancels the call, unless it has ended, and waits until gRPC has forgotten it.
  void leave() {
    if (!held_) return;
    on_thread_stack([this] { call_.TryCancel(); });
    release();
    const shield until_the_end;
    done_.wait();
  }

  ::grpc::ClientContext& call_;

 private:
  void release() {
    if (std::exchange(held_, false)) on_thread_stack([this] { this->RemoveHold(); });
  }
  void OnDone(const ::grpc::Status& status) final {
    status_ = status;
    done_.set();
  }

  event done_;
  ::grpc::Status status_;  // passed on by done_
  bool held_ = false;
};

// A stream that the client writes.
template <class Reactor, class Request>
class client_writes : public writes<client_call<Reactor>, Request> {
 public:
  using writes<client_call<Reactor>, Request>::writes;
  void writes_done() {
    if (!std::exchange(ended_, true)) this->written_.run(this->call_, [this] { this->StartWritesDone(); });
  }

 private:
  void OnWritesDoneDone(bool ok) final { this->written_.end(ok); }

  bool ended_ = false;
};

}  // namespace detail

// Makes a call of one request and one response, and waits for its end. start(done) calls the stub's method of the
// callback interface, with this context. The context, the request and the response must live until then. A cancellation
// point that cancels the call. Returns the status. Throws deadline_exceeded if the fiber's deadline was the nearer one,
// and exceptions of `start`. Any thread.
template <detail::call_start Start>
::grpc::Status call(::grpc::ClientContext& context, Start&& start) {
  this_fiber::check();
  detail::pass_deadline(context);
  event ended;
  ::grpc::Status status;
  on_thread_stack([&] {
    std::forward<Start>(start)(std::function<void(::grpc::Status)>([&](::grpc::Status how) {
      status = std::move(how);
      ended.set();
    }));
  });
  detail::await_reaction(ended, context);
  detail::check_deadline(status);
  return status;
}

// A call with a stream of responses. Its destructor cancels the call if finish() has not seen its end, and waits under
// a shield until gRPC no longer uses it. One fiber or thread at a time.
template <class Response>
class client_reader final : private detail::reads<detail::client_call<::grpc::ClientReadReactor<Response>>, Response> {
  using base = detail::reads<detail::client_call<::grpc::ClientReadReactor<Response>>, Response>;

 public:
  // Begins the call: start(reactor) calls the stub's method. The context and the request must outlive this object. A
  // cancellation point; does not wait.
  template <class Start>
  client_reader(::grpc::ClientContext& context, Start&& start) : base(context) {
    this->begin(std::forward<Start>(start));
  }
  ~client_reader() { this->leave(); }

  // Waits for the next response. False at the end of the stream: finish() says why. A cancellation point that cancels
  // the call.
  bool read(Response& into) { return base::read(into); }
  // Reads what is left, waits for the end of the call, and returns its status. A cancellation point that cancels the
  // call. Destroy the object instead to leave a stream early.
  ::grpc::Status finish() {
    this->drain();
    return base::finish();
  }
};

// A call with a stream of requests and one response. Its destructor is that of client_reader. One fiber or thread at a
// time.
template <class Request>
class client_writer final : private detail::client_writes<::grpc::ClientWriteReactor<Request>, Request> {
  using base = detail::client_writes<::grpc::ClientWriteReactor<Request>, Request>;

 public:
  // Begins the call: start(reactor) calls the stub's method. The context and the response must outlive this object. A
  // cancellation point; does not wait.
  template <class Start>
  client_writer(::grpc::ClientContext& context, Start&& start) : base(context) {
    this->begin(std::forward<Start>(start));
  }
  ~client_writer() { this->leave(); }

  // Sends a request. Waits until the server's window has room. False if the call has ended: finish() says why. A
  // cancellation point that cancels the call.
  bool write(const Request& message, ::grpc::WriteOptions options = {}) { return base::write(message, options); }
  // Tells the server that no further request follows. Does nothing the second time. A cancellation point that cancels
  // the call.
  void writes_done() { base::writes_done(); }
  // Ends the writes if writes_done() has not, waits for the end of the call, and returns its status. If that is OK, the
  // response is there. A cancellation point that cancels the call.
  ::grpc::Status finish() {
    base::writes_done();
    return base::finish();
  }
};

// A call with streams in both directions. Its destructor is that of client_reader. One fiber or thread may read while
// another writes.
template <class Request, class Response>
class client_reader_writer final
    : private detail::reads<detail::client_writes<::grpc::ClientBidiReactor<Request, Response>, Request>, Response> {
  using base = detail::reads<detail::client_writes<::grpc::ClientBidiReactor<Request, Response>, Request>, Response>;

 public:
  // Begins the call: start(reactor) calls the stub's method. The context must outlive this object. A cancellation
  // point; does not wait.
  template <class Start>
  client_reader_writer(::grpc::ClientContext& context, Start&& start) : base(context) {
    this->begin(std::forward<Start>(start));
  }
  ~client_reader_writer() { this->leave(); }

  // As client_reader::read.
  bool read(Response& into) { return base::read(into); }
  // As client_writer::write.
  bool write(const Request& message, ::grpc::WriteOptions options = {}) { return base::write(message, options); }
  // As client_writer::writes_done.
  void writes_done() { base::writes_done(); }
  // Ends the writes if writes_done() has not, reads what is left, waits for the end of the call, and returns its
  // status. No other read or write may be under way. A cancellation point that cancels the call.
  ::grpc::Status finish() {
    base::writes_done();
    this->drain();
    return base::finish();
  }
};

}  // namespace ulexite::rpc
