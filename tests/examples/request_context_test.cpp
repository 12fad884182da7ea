// The ids of requests: how they are read, and how fibers carry them.

#include "../../examples/request_context.hpp"

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace examples;

const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736", span = "00f067aa0ba902b7";

TEST(TraceContext, IsReadAndWritten) {
  const auto read = trace_context::parse("00-" + trace + "-" + span + "-01");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id, trace);
  EXPECT_EQ(read->span_id, span);
  EXPECT_TRUE(read->is_sampled);
  EXPECT_EQ(read->traceparent(), "00-" + trace + "-" + span + "-01");
}

TEST(TraceContext, FlagsOtherThanSampledAreNotPassedOn) {
  for (const auto& [flags, sampled] :
       std::map<std::string, bool>{{"00", false}, {"02", false}, {"03", true}, {"ff", true}}) {
    const auto read = trace_context::parse("00-" + trace + "-" + span + "-" + flags);
    ASSERT_TRUE(read) << flags;
    EXPECT_EQ(read->is_sampled, sampled) << flags;
    EXPECT_EQ(read->traceparent().substr(53), sampled ? "01" : "00");
  }
}

TEST(TraceContext, LaterVersionsMayHaveMoreFields) {
  const std::string rest = "-" + trace + "-" + span + "-01";
  EXPECT_TRUE(trace_context::parse("01" + rest));
  EXPECT_TRUE(trace_context::parse("cc" + rest + "-what-else"));
  EXPECT_FALSE(trace_context::parse("cc" + rest + "what-else"));
  EXPECT_FALSE(trace_context::parse("00" + rest + "-what-else"));
  EXPECT_FALSE(trace_context::parse("ff" + rest));
}

TEST(TraceContext, MalformedOnesAreNone) {
  std::string upper = trace;
  upper[1] = 'B';
  for (const std::string& text : std::vector<std::string>{
           "", "00", "00-" + trace + "-" + span, "00-" + upper + "-" + span + "-01",
           "00-" + std::string(32, '0') + "-" + span + "-01", "00-" + trace + "-" + std::string(16, '0') + "-01",
           "00-" + trace + "-" + span + "-0x", "00_" + trace + "-" + span + "-01", "00-" + trace + "-" + span + "-01 ",
           "00-" + trace + "-" + span + "-01, 00-" + trace + "-" + span + "-01"})
    EXPECT_FALSE(trace_context::parse(text)) << text;
}

TEST(RequestContext, StaysInTheCallersTrace) {
  const auto here = request_context::of("00-" + trace + "-" + span + "-01", "a=1,b=2", "order-7");
  EXPECT_EQ(here.trace.trace_id, trace);
  EXPECT_NE(here.trace.span_id, span);
  EXPECT_TRUE(here.trace.is_sampled);
  EXPECT_EQ(here.tracestate, "a=1,b=2");
  EXPECT_EQ(here.request_id, "order-7");
}

TEST(RequestContext, BeginsATraceWithoutACaller) {
  std::set<std::string> traces;
  for (int i = 0; i < 1000; ++i) {
    const auto here = request_context::of("nonsense", "a=1", "");
    EXPECT_TRUE(trace_context::parse(here.trace.traceparent())) << here.trace.traceparent();
    EXPECT_TRUE(here.tracestate.empty()) << "it belongs to a trace that is unknown";
    EXPECT_EQ(here.request_id, here.trace.span_id);
    traces.insert(here.trace.trace_id);
  }
  EXPECT_EQ(traces.size(), 1000U);
}

TEST(RequestContext, RefusesIdsThatWouldBreakALog) {
  for (const std::string& wrong :
       {std::string("a b"), std::string("a\nb"), std::string("\"x\""), std::string(129, 'x')})
    EXPECT_NE(request_context::of("", "", wrong).request_id, wrong);
  EXPECT_EQ(request_context::of("", "", std::string(128, 'x')).request_id, std::string(128, 'x'));
}

std::map<std::string, std::string> passed_on() {
  std::map<std::string, std::string> fields;
  pass_request([&](const char* name, std::string_view value) { fields.emplace(name, value); });
  return fields;
}

shared_request make(const std::string& id) {
  return std::make_shared<const request_context>(request_context::of("00-" + trace + "-" + span + "-01", "a=1", id));
}

TEST(RequestContext, AScopeRestoresWhatWasBefore) {
  ulexite::run([] {
    EXPECT_TRUE(passed_on().empty());
    {
      const request_scope outer(make("outer"));
      {
        const request_scope inner(make("inner"));
        EXPECT_EQ(passed_on().at("X-Request-Id"), "inner");
      }
      EXPECT_EQ(passed_on().at("X-Request-Id"), "outer");
      EXPECT_EQ(passed_on().at("tracestate"), "a=1");
      EXPECT_EQ(passed_on().at("traceparent"), current_request()->trace.traceparent());
    }
    EXPECT_TRUE(passed_on().empty());
  });
}

// A fiber of another request does not see it, whichever workers they use.
TEST(RequestContext, FibersCarryTheirOwn) {
  ulexite::run([] {
    ulexite::task_group requests;
    for (int i = 0; i < 100; ++i)
      requests.spawn([i] {
        const std::string id = std::to_string(i);
        const request_scope within(make(id));
        ulexite::task_group parts;
        for (int part = 0; part < 3; ++part)
          parts.spawn(with_request([&] {
            ulexite::this_fiber::yield();
            EXPECT_EQ(passed_on().at("X-Request-Id"), id);
            const request_scope sub(make(id + "/part"));
            ulexite::this_fiber::yield();
            EXPECT_EQ(current_request()->request_id, id + "/part");
          }));
        parts.spawn([] { EXPECT_FALSE(current_request()) << "a spawn passes nothing on by itself"; });
        parts.wait();
        EXPECT_EQ(passed_on().at("X-Request-Id"), id);
      });
    requests.wait();
  });
}

}  // namespace
