#pragma once

// What only some fibers have, made when it is first asked for.

#include <ulexite/runtime/wait/locals.hpp>

#include <optional>
#include <stop_token>
#include <utility>

namespace ulexite::detail {

struct rare_task_state {
  struct relay {
    std::stop_source to;
    void operator()() noexcept { to.request_stop(); }
  };

  local_values locals;
  std::stop_source stop{std::nostopstate};
  std::optional<std::stop_callback<relay>> runtime_stop;  // a stop of the whole runtime reaches the token too
};

}  // namespace ulexite::detail
