// interop/grpc.hpp: calls and streams.

#include "grpc_fixture.hpp"

#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

namespace ulexite::test {
namespace {

class Grpc : public GrpcTest {};
ULEXITE_TEST_WORKERS(Grpc);

// What docs/other-engines.md shows.
namespace ux = ulexite;

class greeter final : public Notes::CallbackService {
 public:
  explicit greeter(ux::runtime& in) : runtime_(in) {}

  // quote begins
  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const Note* in, Note* out) override {
    return rpc::serve_unary(runtime_, *context, [=] {
      ux::this_fiber::sleep_for(1ms);  // a handler is a fiber, and may wait
      out->set_text("hello " + in->text());
      return grpc::Status::OK;
    });
  }
  // quote ends

 private:
  ux::runtime& runtime_;
};

TEST_P(Grpc, ThePageWorks) {
  std::string said;
  const auto print = [&](const std::string& text) { said = text; };
  greeter service(rt());
  int port = 0;
  const auto server = start(service, port);
  run([&] {
    const auto stub = stub_for(port);

    // quote begins
    Note question, answer;
    question.set_text("ann");
    grpc::ClientContext context;
    const ux::deadline_scope limit(30s);  // becomes the deadline of the call, and of its handler
    const grpc::Status status =
        rpc::call(context, [&](auto done) { stub->async()->Say(&context, &question, &answer, std::move(done)); });
    print(status.ok() ? answer.text() : status.error_message());
    rpc::shutdown(*server, 1s);  // before the runtime ends
    // quote ends
  });
  EXPECT_EQ(said, "hello ann");
}

TEST_P(Grpc, ACallWaitsForItsAnswer) {
  run([&] {
    EXPECT_EQ(here.say("hello"), "hello");
    EXPECT_EQ(here.say("sleep", 1000), "sleep");
  });
  EXPECT_EQ(here.say("on a plain thread"), "on a plain thread");
}

TEST_P(Grpc, AnExceptionOfAHandlerIsAStatus) {
  run([&] {
    EXPECT_EQ(here.say("throw"), "2: thrown");
    EXPECT_EQ(here.say("status"), "5: no such note");
    EXPECT_EQ(here.say("memory"), "8: out of memory");
    EXPECT_EQ(here.say("number"), "2: an exception that is no std::exception");
    EXPECT_NO_THROW(rpc::check(grpc::Status::OK));
    EXPECT_THROW(rpc::check({StatusCode::ABORTED, "so"}), rpc::status_error);
  });
}

TEST_P(Grpc, AStreamOfRequestsHasOneAnswer) {
  run([&] {
    grpc::ClientContext context;
    Note sum;
    rpc::client_writer<Note> out(context, [&](auto* reactor) { here.stub->async()->Add(&context, &sum, reactor); });
    for (int i = 1; i <= 1000; ++i) ASSERT_TRUE(out.write(note("", i)));
    EXPECT_TRUE(out.finish().ok());  // ends the writes itself
    EXPECT_TRUE(out.finish().ok());
    EXPECT_EQ(sum.number(), 500'500);
  });
}

TEST_P(Grpc, AServerMayEndAStreamOfRequests) {
  run([&] {
    grpc::ClientContext context;
    Note sum;
    rpc::client_writer<Note> out(context, [&](auto* reactor) { here.stub->async()->Add(&context, &sum, reactor); });
    ASSERT_TRUE(out.write(note("enough")));
    while (out.write(note(std::string(1000, 'x')))) {
    }
    const grpc::Status status = out.finish();
    EXPECT_EQ(status.error_code(), StatusCode::OUT_OF_RANGE);
    EXPECT_EQ(status.error_message(), "enough");
  });
}

TEST_P(Grpc, ManyMessagesBothWaysOverChannels) {
  constexpr int count = 2000;
  run([&] {
    grpc::ClientContext context;
    rpc::client_reader_writer<Note, Note> peer(context,
                                               [&](auto* reactor) { here.stub->async()->Chat(&context, reactor); });
    channel<Note> up(16), down(16);
    int expected = 0;
    scope([&](task_group& group) {
      group.spawn([&] {
        for (const Note& each : up) EXPECT_TRUE(peer.write(each));
        peer.writes_done();
      });
      group.spawn([&] {
        for (Note each; peer.read(each); each.Clear()) down.send(std::move(each));
        down.close();
      });
      group.spawn([&] {
        for (int i = 0; i < count; ++i) up.send(note("", i));
        up.close();
      });
      for (const Note& each : down) ASSERT_EQ(each.number(), expected++);
    });
    EXPECT_TRUE(peer.finish().ok());
    EXPECT_EQ(expected, count);
  });
}

TEST_P(Grpc, FinishReadsWhatIsLeft) {
  run([&] {
    grpc::ClientContext one, two;
    const Note request = note("", 1000);
    rpc::client_reader<Note> in(one, [&](auto* reactor) { here.stub->async()->Count(&one, &request, reactor); });
    Note first;
    ASSERT_TRUE(in.read(first));
    EXPECT_TRUE(in.finish().ok());
    EXPECT_EQ(seen.written, 1000);
    rpc::client_reader_writer<Note, Note> peer(two, [&](auto* reactor) { here.stub->async()->Chat(&two, reactor); });
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(peer.write(note("", i)));
    EXPECT_TRUE(peer.finish().ok());
  });
}

TEST_P(Grpc, ThousandsOfCallsWaitWithoutThreads) {
  const int calls = fibers(GetParam() == 2 ? 2000 : 500);
  std::atomic<int> good{0};
  run([&] {
    scope([&](task_group& group) {
      for (int i = 0; i < calls; ++i) group.spawn([&] { good += here.say("wait") == "wait"; });
      here.await_begun(calls);
      const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
      EXPECT_LT(threads, 100);
      here.service.go.set();
    });
  });
  EXPECT_EQ(good, calls);
}

TEST_P(Grpc, AboveMaxFibersACallIsRefused) {
  runtime& small = make(runtime_options{.threads = GetParam(), .max_fibers = 3});
  {
    served there(small);
    run([&] {
      scope([&](task_group& group) {
        for (int i = 0; i < 3; ++i) group.spawn([&] { EXPECT_EQ(there.say("wait"), "wait"); });
        there.await_begun(3);
        EXPECT_EQ(there.say("one more"), "8: the server has as many fibers as it may have");
        there.service.go.set();
      });
      served::poll([&] { return small.metrics().fibers_live == 0; });
      EXPECT_EQ(there.say("one more"), "one more");
    });
  }
}

TEST_P(Grpc, AnotherContextMayRunTheHandlers) {
  struct strand_service final : Notes::CallbackService {
    explicit strand_service(concurrent_context& one_at_a_time) : in(one_at_a_time) {}
    grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const Note* request, Note* response) override {
      return rpc::serve_unary(in, *context, [=, this] {
        response->set_number(count += request->number());  // no two at the same time
        return grpc::Status::OK;
      });
    }
    concurrent_context& in;
    int count = 0;
  };
  run([&] {
    concurrent_context turns;
    strand_service service(turns);
    int port = 0;
    const auto server = start(service, port);
    const auto stub = stub_for(port);
    scope([&](task_group& group) {
      for (int i = 0; i < 100; ++i)
        group.spawn([&] {
          grpc::ClientContext context;
          const Note request = note("", 1);
          Note response;
          rpc::check(rpc::call(context, [&](auto done) { stub->async()->Say(&context, &request, &response, done); }));
        });
    });
    rpc::shutdown(*server, 1s);
    EXPECT_EQ(service.count, 100);
  });
}

}  // namespace
}  // namespace ulexite::test
