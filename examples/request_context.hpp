#pragma once

// The ids of a request, which logs and onward calls carry, after W3C's Trace Context (level 1). No exporter: a
// collector can join the logs of all services by the trace's id.
//
//   const examples::request_scope within;                     // in the connection's fiber, around each request
//   examples::begin_request([&](const char* name) { return fields of that name; });
//   group.spawn(examples::with_request([&] { ... }));         // a fiber of the same request
//   examples::pass_request([&](const char* name, std::string_view value) { onward.set(name, value); });

#include <ulexite/sync/fiber_local.hpp>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace examples {

// The position of a request in its trace. Ids are hexadecimal digits in small letters.
struct trace_context {
  std::string trace_id;     // 32 digits: the same in all services that a user's action reaches
  std::string span_id;      // 16 digits: this request, in the service that made the context
  bool is_sampled = false;  // whether the caller records its part of the trace

  // Reads the field traceparent; nothing if it is malformed. The span is then the caller's.
  static std::optional<trace_context> parse(std::string_view text) {
    constexpr std::size_t size = 55;  // of version 00: 00-TRACE-SPAN-FLAGS
    if (text.size() < size || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
    const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16),
                           flags = text.substr(53, 2);
    for (const std::string_view each : {version, trace, span, flags})
      if (each.find_first_not_of("0123456789abcdef") != each.npos) return std::nullopt;
    // A later version may have more fields.
    if (version == "ff" || (text.size() > size && (version == "00" || text[size] != '-'))) return std::nullopt;
    if (is_zero(trace) || is_zero(span)) return std::nullopt;
    const bool sampled = std::string_view("13579bdf").find(flags[1]) != std::string_view::npos;
    return trace_context{std::string(trace), std::string(span), sampled};
  }
  // A span of its own in the caller's trace, or the first of a new trace, which nobody samples. Never waits. Throws
  // std::system_error if the system gives no random bytes.
  static trace_context below(const std::optional<trace_context>& caller) {
    if (caller) return {caller->trace_id, random_digits(8), caller->is_sampled};
    return {random_digits(16), random_digits(8), false};
  }

  // The field traceparent for onward calls, whose caller is this span.
  [[nodiscard]] std::string traceparent() const {
    return "00-" + trace_id + "-" + span_id + (is_sampled ? "-01" : "-00");
  }

 private:
  static bool is_zero(std::string_view id) { return id.find_first_not_of('0') == id.npos; }
  // Of a supply of the thread, because a system call for each id would be felt. Not inlined: a compiler may keep the
  // address of a thread_local over a switch of fibers.
  [[gnu::noinline]] static std::string random_digits(std::size_t bytes) {
    thread_local std::array<unsigned char, 256> supply;
    thread_local std::size_t left = 0;
    std::string digits(2 * bytes, '0');
    do {
      if (left < bytes) {
        if (::getrandom(supply.data(), supply.size(), 0) != static_cast<ssize_t>(supply.size()))  // so few come at once
          throw std::system_error(errno, std::system_category(), "getrandom");
        left = supply.size();
      }
      for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned char next = supply[--left];
        digits[2 * i] = "0123456789abcdef"[next >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[next & 15];
      }
    } while (is_zero(digits));  // not an id
    return digits;
  }
};

// What a request is known by.
struct request_context {
  trace_context trace;
  std::string tracestate;  // what other systems noted about the trace; passed on as it is
  std::string request_id;  // the client's, or else the span's

  // From the fields traceparent, tracestate and X-Request-Id of a request, empty for those that it lacks. A malformed
  // one is treated as missing, because a client must not fail by it, nor put lines into logs. Throws as
  // trace_context::below.
  static request_context of(std::string_view traceparent, std::string_view tracestate, std::string_view request_id) {
    const auto caller = trace_context::parse(traceparent);
    request_context made{trace_context::below(caller), {}, {}};
    if (caller && tracestate.size() <= 512) made.tracestate = tracestate;
    made.request_id = is_id(request_id) ? std::string(request_id) : made.trace.span_id;
    return made;
  }

 private:
  static bool is_id(std::string_view text) {
    return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char each) {
      return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
             std::string_view("-_.:+/=@").find(each) != std::string_view::npos;
    });
  }
};

using shared_request = std::shared_ptr<const request_context>;

// The request that the calling fiber works for; null if there is none.
inline shared_request& current_request() {
  static ulexite::fiber_local<shared_request> current;
  return current.get();
}

// Sets the request of the calling fiber in a scope; and restores what was before.
class request_scope {
 public:
  explicit request_scope(shared_request now = nullptr) : before_(std::exchange(current_request(), std::move(now))) {}
  request_scope(const request_scope&) = delete;
  request_scope& operator=(const request_scope&) = delete;
  ~request_scope() { current_request() = std::move(before_); }

 private:
  shared_request before_;
};

// Makes the request of the calling fiber. field(NAME) returns the value of a field, or "" ; several lines joined by
// commas.
template <class Field>
void begin_request(Field&& field) {
  current_request() = std::make_shared<const request_context>(
      request_context::of(field("traceparent"), field("tracestate"), field("X-Request-Id")));
}

// Wraps a function that another fiber will call, so that it works for the request of the calling fiber. A new fiber
// inherits no fiber_local, because each spawn would pay for it; so what belongs to a request says it.
template <class F>
[[nodiscard]] auto with_request(F function) {
  return [request = current_request(), function = std::move(function)]() mutable -> decltype(auto) {
    const request_scope within(request);
    return function();
  };
}

// Calls set(NAME, VALUE) for each field that a call to another service needs. Without a request none.
template <class Set>
void pass_request(Set&& set) {
  const shared_request now = current_request();
  if (!now) return;
  set("traceparent", std::string_view(now->trace.traceparent()));
  if (!now->tracestate.empty()) set("tracestate", std::string_view(now->tracestate));
  set("X-Request-Id", std::string_view(now->request_id));
}

}  // namespace examples
