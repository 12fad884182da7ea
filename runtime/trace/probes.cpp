#include <ulexite/runtime/trace/probes.hpp>
#include <ulexite/runtime/trace/recorder.hpp>

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

// A tool adds 1 while it uses the probe.
extern "C" {
// Tools find the semaphores by the notes of the probes, and change them in the memory of the process.
#define ULEXITE_SEMAPHORE [[gnu::visibility("hidden"), gnu::section(".probes"), gnu::used]] volatile unsigned short
ULEXITE_SEMAPHORE ulexite_spawn_semaphore = 0;
ULEXITE_SEMAPHORE ulexite_switch_semaphore = 0;
ULEXITE_SEMAPHORE ulexite_park_semaphore = 0;
ULEXITE_SEMAPHORE ulexite_wake_semaphore = 0;
ULEXITE_SEMAPHORE ulexite_steal_semaphore = 0;
#undef ULEXITE_SEMAPHORE
}

namespace ulexite::detail {

// The monitor asks at each tick (poll_probes). If a tool uses a probe, the workers record their events, and each
// record fires its probe.
bool probes_wanted() noexcept {
  return (ulexite_spawn_semaphore | ulexite_switch_semaphore | ulexite_park_semaphore | ulexite_wake_semaphore |
          ulexite_steal_semaphore) != 0;
}

// Both ends of a run are the probe `switch`; the fiber's number is 0 when the worker leaves a fiber for its main stack.
void fire_probe(trace_kind kind, std::size_t worker, std::uint64_t fiber, std::uint64_t value,
                std::uint8_t detail) noexcept {
  switch (kind) {
    case trace_kind::dispatch: STAP_PROBE3(ulexite, switch, worker, value, detail); break;
    case trace_kind::left: STAP_PROBE3(ulexite, switch, worker, std::uint64_t{0}, detail); break;
    case trace_kind::spawn: STAP_PROBE3(ulexite, spawn, worker, value, fiber); break;
    case trace_kind::wake: STAP_PROBE3(ulexite, wake, worker, value, fiber); break;
    case trace_kind::park: STAP_PROBE1(ulexite, park, worker); break;
    case trace_kind::steal: STAP_PROBE1(ulexite, steal, worker); break;
    default: break;
  }
}

}  // namespace ulexite::detail

#else

namespace ulexite::detail {

bool probes_wanted() noexcept { return false; }
void fire_probe(trace_kind, std::size_t, std::uint64_t, std::uint64_t, std::uint8_t) noexcept {}

}  // namespace ulexite::detail

#endif
