#pragma once

// State that only some fibers have, made at its first use.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/runtime/wait/locals.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>

namespace ulexite::detail {

struct agent;
class scheduler;
class strand;

// A strand links its members by this state's hook, so an ordinary fiber's record needs no room for it.
struct rare_task_state : list_hook {
  explicit rare_task_state(agent& whose) noexcept : who(whose) {}

  // Passes a stop of the runtime, or of the strand, to the fiber's own token. The source is shared with that token.
  struct relay {
    std::stop_source to;
    void operator()() noexcept { run_stop_callbacks(to); }
  };

  // `stop` and the two relays are set with the task's lock held, by the first caller that wants a token.
  local_values locals;
  std::stop_source stop{std::nostopstate};
  std::optional<std::stop_callback<relay>> runtime_stop;  // a stop of the whole runtime reaches the token too
  std::optional<std::stop_callback<relay>> strand_stop;   // and a stop of the strand
  std::source_location waits_forbidden_at;                // by no_suspend_scope
  const char* waits_forbidden_by = nullptr;               // the same in words; null: only the place is known
  unsigned inner_bans = 0;                                // further objects no_suspend_scope that have not ended
  wait_kind refused = wait_kind::none;                    // the last wait that no_suspend_scope has refused
  void* user_data = nullptr;                              // this_fiber::user_data
  void* c_handle = nullptr;                               // of the C interface
  void (*end_c_handle)(void*) noexcept = nullptr;         // called with it if the fiber is abandoned

  // Whether the fiber is bound (scheduler.hpp). The fiber changes the members below, while it runs or before it is
  // published.
  [[nodiscard]] bool is_bound() const noexcept { return member_of || pins > 0; }
  agent& who;
  strand* member_of = nullptr;     // also linked in its list of members
  unsigned pins = 0;               // objects no_migration_scope
  scheduler* pinned_to = nullptr;  // null with pins: the worker that runs it next
};

}  // namespace ulexite::detail
