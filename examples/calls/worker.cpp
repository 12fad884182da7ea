#include "worker.hpp"

#include "../tour/words.hpp"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace ux = ulexite;
namespace rpc = ulexite::rpc;
using calls::Counts, calls::Part;

namespace {

Counts counts_of(const Part& part) {
  tour::word_counts words;
  tour::tokenizer tokenizer(words);
  tokenizer.feed(part.text());
  static_cast<void>(tokenizer.finish());
  Counts counts;
  counts.set_number(part.number());
  for (const auto& [word, times] : words) (*counts.mutable_words())[word] = times;
  return counts;
}

}  // namespace

grpc::ServerBidiReactor<Part, Counts>* word_counter::Count(grpc::CallbackServerContext* context) {
  const auto count = [](rpc::server_reader_writer<Part, Counts>& coordinator) {
    for (Part part; coordinator.read(part);)
      if (!coordinator.write(counts_of(part))) break;
    return grpc::Status::OK;
  };
  return rpc::serve_reader_writer<Part, Counts>(in_, *context, count);
}

void work(ux::runtime& in) {
  word_counter counter(in);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&counter);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) throw std::runtime_error("a worker cannot listen on a port of 127.0.0.1");
  in.run([&] {
    ux::os::standard_output().write(std::to_string(port) + "\n");
    for (std::array<char, 64> ignored; ux::os::standard_input().read_some(ignored.data(), ignored.size()) > 0;) {
    }
    rpc::shutdown(*server, std::chrono::seconds(1));
  });
}
