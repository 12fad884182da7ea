#pragma once

// The common part of grpc_client.hpp and grpc_server.hpp: a fiber waits for a reaction of gRPC.

#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <grpcpp/impl/call_op_set.h>

#include <utility>

namespace ulexite::rpc::detail {

// Waits for a reaction to set the event. gRPC uses messages and contexts until then. So a wait that is cancelled
// cancels the call, and then waits for the reaction, which soon follows.
template <class Event, class Context>
void await_reaction(Event& reaction, Context& call) {
  try {
    reaction.wait();
  } catch (const operation_cancelled&) {
    on_thread_stack([&] { call.TryCancel(); });
    const shield until_the_reaction;
    reaction.wait();
    throw;
  }
}

// An operation of a stream, one at a time.
class operation {
 public:
  // Calls start(), and waits until the reaction has called end(). Returns its result. If the fiber was cancelled
  // before, it only cancels the call, without which both sides might wait for the other.
  template <class Context, class Start>
  bool run(Context& call, Start&& start) {
    try {
      this_fiber::check();
    } catch (const operation_cancelled&) {
      on_thread_stack([&] { call.TryCancel(); });
      throw;
    }
    on_thread_stack(std::forward<Start>(start));
    await_reaction(ended_, call);
    return ok_;
  }
  void end(bool ok) noexcept {
    ok_ = ok;
    ended_.set();
  }

 private:
  auto_reset_event ended_;
  bool ok_ = false;  // passed on by ended_
};

// A reactor that reads. `Base` is a reactor with the member call_, its context.
template <class Base, class Message>
class reads : public Base {
 public:
  using Base::Base;
  bool read(Message& into) {
    more_ = read_.run(this->call_, [&] { this->StartRead(&into); });
    return more_;
  }

 protected:
  // Reads to the end what is left.
  void drain() {
    for (Message left; more_;) read(left);
  }

 private:
  void OnReadDone(bool ok) final { read_.end(ok); }

  operation read_;
  bool more_ = true;
};

// A reactor that writes.
template <class Base, class Message>
class writes : public Base {
 public:
  using Base::Base;
  bool write(const Message& message, ::grpc::WriteOptions options) {
    return written_.run(this->call_, [&] { this->StartWrite(&message, options); });
  }

 protected:
  operation written_;

 private:
  void OnWriteDone(bool ok) final { written_.end(ok); }
};

}  // namespace ulexite::rpc::detail
