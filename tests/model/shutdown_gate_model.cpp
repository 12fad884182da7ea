// The gate of a runtime under Relacy. No thread publishes in a runtime that has ended, and its end sees all that was
// published.
//
// MUTANT: seq_cst_is_acq_rel  a thread does not see the gate shut, and is not seen inside
// MUTANT: release_is_relaxed  the runtime ends without seeing all that was published

#include <ulexite/runtime/task/shutdown_gate.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, seq_cst_is_acq_rel, release_is_relaxed };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::seq_cst_is_acq_rel, model::seq_cst_is_acq_rel>,
                                           model::by<mutation::release_is_relaxed, model::release_is_relaxed>>>;

struct publish_and_end : rl::test_suite<publish_and_end, 3> {
  ulexite::detail::basic_shutdown_gate<atomics> gate;
  rl::var<int> published[2];  // destroyed with the runtime
  bool gone = false;

  void before() { published[0]($) = published[1]($) = 0; }

  void thread(unsigned id) {
    if (id == 2) {
      gate.shut();
      for (auto& each : published) each($) = -1;
      gone = true;
      return;
    }
    for (int i = 0; i < 2; ++i) {
      if (gate.enter()) {
        RL_ASSERT(!gone);
        published[id]($) = 1;
      }
      gate.leave();
    }
  }
};

int main() { return model::holds<publish_and_end>(1'000'000) ? 0 : 1; }
