#pragma once

// Static probes for perf, bpftrace, SystemTap and gdb: ulexite:spawn, switch, park, wake, steal. They are on the path
// on which a worker records, so that no other path has even their nops. A tool that wants one raises its semaphore, and
// the monitor then makes the workers record. If the header sys/sdt.h is absent at the build, there are none.

#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

enum class trace_kind : std::uint8_t;

#if __has_include(<sys/sdt.h>)
inline constexpr bool has_probes = true;
#else
inline constexpr bool has_probes = false;
#endif

// Whether a tool uses one of them. Any thread.
bool probes_wanted() noexcept;
// Fires the probe of such an event, if there is one. `fiber`: the number of the running fiber, 0 for none.
void fire_probe(trace_kind kind, std::size_t worker, std::uint64_t fiber, std::uint64_t value,
                std::uint8_t detail) noexcept;

}  // namespace ulexite::detail
