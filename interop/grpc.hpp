#pragma once

// gRPC in fibers: a call suspends its fiber, and a handler is a fiber. gRPC's own threads only set events and start
// fibers. They never wait, so thousands of calls need no more threads.
//
// A client. What a lambda starts is a method of the stub's callback interface:
//
//   namespace rpc = ulexite::rpc;
//   grpc::ClientContext context;
//   const grpc::Status status = rpc::call(context, [&](auto done) {
//     stub->async()->Say(&context, &request, &response, std::move(done));
//   });
//
//   rpc::client_reader<Reply> in(context, [&](auto* reactor) { stub->async()->List(&context, &request, reactor); });
//   for (Reply each; in.read(each);) use(each);
//   const grpc::Status how = in.finish();
//
// A server. The methods of a CallbackService return what these functions return:
//
//   grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const Ask* in, Reply* out) override {
//     return rpc::serve_unary(runtime, *context, [=] {
//       out->set_text(look_up(in->text()));  // may wait
//       return grpc::Status::OK;
//     });
//   }
//   grpc::ServerWriteReactor<Reply>* List(grpc::CallbackServerContext* context, const Ask* in) override {
//     return rpc::serve_writer<Reply>(runtime, *context, [=](rpc::server_writer<Reply>& out) {
//       for (const Reply& each : found(*in))
//         if (!out.write(each)) break;  // the client has left
//       return grpc::Status::OK;
//     });
//   }
//
// Deadlines and requests to stop go both ways. The fiber's deadline becomes the call's, and the handler runs with the
// deadline of its call. A request to stop the client's fiber cancels the call. A handler whose call was cancelled, or
// whose client is gone, is asked to stop. Each read or write waits for the other side, and nothing is buffered here:
// the window of HTTP/2 is the back-pressure. To wait for a message with a limit, let another fiber read it into a
// channel.
//
// gRPC's functions run on the stack of the worker's thread (on_thread_stack). Therefore your interceptors, credentials
// and custom serializers, which gRPC calls there, must not wait. The namespace is rpc, because ulexite::grpc would hide
// gRPC's own inside of namespace ulexite.
//
// The library itself does not need gRPC; a program that includes this header links grpc++ and protobuf (gRPC 1.51 or
// later).

#include <ulexite/interop/grpc_client.hpp>  // IWYU pragma: export
#include <ulexite/interop/grpc_server.hpp>  // IWYU pragma: export
#include <ulexite/interop/grpc_status.hpp>  // IWYU pragma: export
