#pragma once

// What only some fibers have, made when it is first asked for.

#include <ulexite/runtime/agent.hpp>

#include <memory>
#include <stop_token>
#include <utility>

namespace ulexite::detail {

struct task_extras {
  explicit task_extras(std::stop_token of_runtime) : runtime_stop(std::move(of_runtime), relay{this}) {}

  struct relay {
    task_extras* to;
    void operator()() const noexcept { to->stop.request_stop(); }
  };

  std::stop_source stop;
  std::stop_callback<relay> runtime_stop;  // a stop of the whole runtime reaches the token's callbacks too
  local_values locals;
};

}  // namespace ulexite::detail
