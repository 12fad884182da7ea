#pragma once

#include "../tour/words.hpp"
#include "text_parts.hpp"

#include <ulexite.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

// The place of one worker process: starts it, streams parts to it, and replaces it when it ends or does not answer.
//
// A part stays in unanswered_ until its counts are here, and the counts of a worker that is given up are read no more.
// So each part is counted once, however often it was sent.
class seat {
 public:
  seat(unsigned number, std::chrono::milliseconds patience, ulexite::channel<part_ptr>& from)
      : number_(number), patience_(patience), from_(from) {}

  // Runs until the channel is closed and all parts are counted. A cancellation point that kills the worker. Throws
  // std::runtime_error if three workers in a row have answered nothing, std::system_error if none can be started.
  void run();

  // After run().
  [[nodiscard]] const tour::word_counts& words() const noexcept { return words_; }
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }
  [[nodiscard]] std::uint64_t sent_again() const noexcept { return sent_again_; }

 private:
  class conversation;

  const unsigned number_;
  const std::chrono::milliseconds patience_;
  ulexite::channel<part_ptr>& from_;
  std::deque<part_ptr> unanswered_;  // in the order of their sending
  tour::word_counts words_;
  std::uint64_t answered_ = 0, replaced_ = 0, sent_again_ = 0;
};
