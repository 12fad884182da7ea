#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite {

// Options of runtime::start_trace.
struct trace_options {
  static constexpr std::size_t max_events = std::size_t{1} << 30;  // the largest events_per_worker

  std::size_t events_per_worker = 1 << 16;  // the last events, 16 bytes each; rounded up to a power of two
};

namespace detail {
void record_span(const char* name, bool begins) noexcept;
}

// A named span of the calling fiber's work, which a trace shows. The fiber may wait in it. No effect while no trace is
// recorded, and on a plain thread.
class [[nodiscard]] trace_span {
 public:
  // Begins the span. `name` must live until the trace is written, as a literal does.
  [[nodiscard]] explicit trace_span(const char* name) noexcept : name_(name) { detail::record_span(name_, true); }
  ~trace_span() { detail::record_span(name_, false); }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;

 private:
  const char* const name_;
};

}  // namespace ulexite
