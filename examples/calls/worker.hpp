#pragma once

#include "word_count.grpc.pb.h"

#include <ulexite.hpp>
#include <ulexite/interop/grpc.hpp>

// Counts the words of parts, a fiber for each stream.
class word_counter final : public calls::WordCount::CallbackService {
 public:
  explicit word_counter(ulexite::runtime& in) noexcept : in_(in) {}

  grpc::ServerBidiReactor<calls::Part, calls::Counts>* Count(grpc::CallbackServerContext* context) override;

 private:
  ulexite::runtime& in_;
};

// The program of a worker process: serves on a free port of the loopback, which it prints in a line, until its standard
// input ends. So it also ends when the coordinator is killed.
void work(ulexite::runtime& in);
