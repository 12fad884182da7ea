#pragma once

// A service whose handlers count themselves, and a server in the same process, for the tests of interop/grpc.hpp.

#include "grpc_notes.grpc.pb.h"
#include "support/runtime_fixture.hpp"

#include <ulexite.hpp>
#include <ulexite/interop/grpc.hpp>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace ulexite::test {

using grpc::StatusCode;

// What the handlers have lived through.
struct tally {
  std::atomic<long> begun{0}, ended{0}, stopped{0}, expired{0}, written{0};
};

// Handlers that count themselves. Say does what its request says.
class notes final : public Notes::CallbackService {
 public:
  explicit notes(runtime& in) : in_(in) {}

  tally seen;
  event go;  // for "wait"

 private:
  // One handler.
  template <class Body>
  grpc::Status counted(Body&& body) {
    struct count {
      tally& of;
      explicit count(tally& all) : of(all) { ++of.begun; }
      ~count() { ++of.ended; }
    } const alive(seen);
    try {
      return body();
    } catch (const deadline_exceeded&) {
      ++seen.expired;
      throw;
    } catch (const operation_cancelled&) {
      ++seen.stopped;
      throw;
    }
  }

  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const Note* in, Note* out) override {
    return rpc::serve_unary(in_, *context, [=, this] {
      return counted([&] {
        const std::string& text = in->text();
        if (text == "throw") throw std::runtime_error("thrown");
        if (text == "status") throw rpc::status_error({StatusCode::NOT_FOUND, "no such note"});
        if (text == "memory") throw std::bad_alloc();
        if (text == "number") throw 7;
        if (text == "wait") go.wait();
        if (text == "sleep") this_fiber::sleep_for(std::chrono::microseconds(in->number()));
        *out = *in;
        return grpc::Status::OK;
      });
    });
  }
  grpc::ServerReadReactor<Note>* Add(grpc::CallbackServerContext* context, Note* out) override {
    return rpc::serve_reader<Note>(in_, *context, [=, this](rpc::server_reader<Note>& from) {
      return counted([&] {
        for (Note each; from.read(each);) {
          if (each.text() == "enough") return grpc::Status(StatusCode::OUT_OF_RANGE, "enough");
          out->set_number(out->number() + each.number());
        }
        return grpc::Status::OK;
      });
    });
  }
  // Numbers from 0, each with the text of the request. If that begins with "impatient", it
  // gives up when the client does not read for 20 ms.
  grpc::ServerWriteReactor<Note>* Count(grpc::CallbackServerContext* context, const Note* in) override {
    return rpc::serve_writer<Note>(in_, *context, [=, this](rpc::server_writer<Note>& to) {
      return counted([&] {
        Note each;
        each.set_text(in->text());
        for (int i = 0; i < in->number(); ++i) {
          each.set_number(i);
          const deadline_scope limit(in->text().starts_with("impatient") ? 20ms : std::chrono::milliseconds(1h));
          if (!to.write(each)) return grpc::Status(StatusCode::CANCELLED, "the client has left");
          ++seen.written;
        }
        return grpc::Status::OK;
      });
    });
  }
  grpc::ServerBidiReactor<Note, Note>* Chat(grpc::CallbackServerContext* context) override {
    return rpc::serve_reader_writer<Note, Note>(in_, *context, [this](rpc::server_reader_writer<Note, Note>& peer) {
      return counted([&] {
        for (Note each; peer.read(each);)
          if (!peer.write(each)) break;
        return grpc::Status::OK;
      });
    });
  }

  runtime& in_;
};

// Serves on a free port.
inline std::unique_ptr<grpc::Server> start(grpc::Service& service, int& port) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

inline std::unique_ptr<Notes::Stub> stub_for(int port) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own, not one that another test has left
  return Notes::NewStub(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), own));
}

inline Note note(const std::string& text, int number = 0) {
  Note made;
  made.set_text(text);
  made.set_number(number);
  return made;
}

// A server in a runtime, and a stub for it.
class served {
 public:
  explicit served(runtime& in) : service(in) {
    server = start(service, port);
    stub = stub_for(port);
  }
  ~served() { rpc::shutdown(*server, 0ms); }

  grpc::Status say(grpc::ClientContext& context, const Note& request, Note& response) {
    return rpc::call(context, [&](auto done) { stub->async()->Say(&context, &request, &response, std::move(done)); });
  }
  // The text of the answer, or "CODE: MESSAGE".
  std::string say(const std::string& text, int number = 0) {
    grpc::ClientContext context;
    const Note request = note(text, number);
    Note response;
    const grpc::Status status = say(context, request, response);
    return status.ok() ? response.text() : rpc::status_error(status).what();
  }
  void await_begun(long count) const {
    poll([&] { return service.seen.begun >= count; });
  }
  void await_ended() const {
    poll([&] { return service.seen.begun == service.seen.ended; });
  }
  // Lets time pass until the condition holds. A loop of yields would take the processor from gRPC's threads.
  template <class Condition>
  static void poll(Condition condition) {
    while (!condition()) this_fiber::sleep_for(1ms);
  }

  notes service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Notes::Stub> stub;
};

class GrpcTest : public WorkersTest {
 protected:
  GrpcTest() : here(rt()) {}

  served here;
  tally& seen = here.service.seen;
};

}  // namespace ulexite::test
