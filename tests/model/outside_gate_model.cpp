// The gate of a runtime under Relacy: nobody publishes in a runtime that has gone, and its end sees what was published.
//
// MUTANT: SEQ_CST_IS_ACQ_REL  a thread does not see the gate shut, and is not seen inside
// MUTANT: RELEASE_IS_RELAXED  the runtime ends while it does not see what was published

#include <ulexite/runtime/task/outside_gate.hpp>

#include "relacy_atomics.hpp"

#if defined(MUTANT_SEQ_CST_IS_ACQ_REL)
using atomics = model::relacy_atomics<model::seq_cst_is_acq_rel>;
#elif defined(MUTANT_RELEASE_IS_RELAXED)
using atomics = model::relacy_atomics<model::release_is_relaxed>;
#else
using atomics = model::relacy_atomics<>;
#endif

struct publish_and_end : rl::test_suite<publish_and_end, 3> {
  ulexite::detail::basic_outside_gate<atomics> gate;
  rl::var<int> published[2];  // goes with the runtime
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
