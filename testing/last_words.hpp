#pragma once

#include <ulexite/fiber/stack_overflow.hpp>

namespace ulexite::testing {

// While one exists, a process that dies in a run on its thread writes the line that repeats the run: after a fault, an
// abort, or the report of a sanitizer.
class last_words {
 public:
  last_words() noexcept;
  last_words(const last_words&) = delete;
  last_words& operator=(const last_words&) = delete;
  ~last_words();

 private:
  detail::signal_stack stack_;  // a fault may be an overflow of a fiber's stack
};

}  // namespace ulexite::testing
