// interop/grpc.hpp: deadlines, requests to stop, ends of servers, and a client that is killed.

#include "grpc_fixture.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

namespace ulexite::test {
namespace {

class GrpcEnds : public GrpcTest {};
ULEXITE_TEST_WORKERS(GrpcEnds);

TEST_P(GrpcEnds, TheFibersDeadlineEndsTheCallAndItsHandler) {
  run([&] {
    const deadline_scope outer(5min);
    do {  // until a call comes to its handler in time
      const auto begun = steady_clock::now();
      EXPECT_THROW(timeout(50ms, [&] { here.say("wait"); }), deadline_exceeded);
      EXPECT_GE(steady_clock::now() - begun, 50ms);
    } while (seen.begun == 0);
    EXPECT_FALSE(outer.expired());
    here.await_ended();
    EXPECT_EQ(seen.expired + seen.stopped, seen.begun);
    EXPECT_FALSE(try_for(20ms, [&] { return here.say("wait"); }));
    EXPECT_EQ(here.say("after"), "after");
  });
}

TEST_P(GrpcEnds, ANearerDeadlineOfTheContextIsAStatus) {
  run([&] {
    const deadline_scope outer(1min);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20ms);
    Note response;
    EXPECT_EQ(here.say(context, note("wait"), response).error_code(), StatusCode::DEADLINE_EXCEEDED);
    here.await_ended();
  });
}

TEST_P(GrpcEnds, ARequestToStopEndsTheCallAndItsHandler) {
  run([&] {
    auto caller = spawn([&] { here.say("wait"); });
    here.await_begun(1);
    caller.request_stop();
    EXPECT_THROW(caller.get(), operation_cancelled);
    here.await_ended();
    EXPECT_EQ(seen.stopped, 1);
  });
}

TEST_P(GrpcEnds, AStoppedFiberMakesNoCall) {
  run([&] {
    event stopped;
    auto caller = spawn([&] {
      {
        const shield until_it_is;
        stopped.wait();
      }
      grpc::ClientContext context;
      const Note request;
      EXPECT_THROW(here.say("never"), operation_cancelled);
      const auto reads = [&](auto* reactor) { here.stub->async()->Count(&context, &request, reactor); };
      EXPECT_THROW(rpc::client_reader<Note>(context, reads), operation_cancelled);
    });
    caller.request_stop();
    stopped.set();
    caller.get();
    EXPECT_EQ(here.say("last"), "last");
    EXPECT_EQ(seen.begun, 1);
  });
}

TEST_P(GrpcEnds, AReaderThatLeavesEndsItsHandler) {
  run([&] {
    {
      grpc::ClientContext context;
      const Note request = note(std::string(10'000, 'x'), 1'000'000);
      rpc::client_reader<Note> in(context,
                                  [&](auto* reactor) { here.stub->async()->Count(&context, &request, reactor); });
      Note each;
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(in.read(each));
        EXPECT_EQ(each.number(), i);
      }
      // The window fills, and the handler waits. What it has written changes no more.
      for (long before = -1; before != seen.written; this_fiber::sleep_for(50ms)) before = seen.written;
      EXPECT_LT(seen.written, 500'000);
    }
    here.await_ended();
    EXPECT_EQ(seen.begun, 1);
  });
}

TEST_P(GrpcEnds, AHandlersOwnDeadlineEndsItsWrite) {
  run([&] {
    grpc::ClientContext context;
    const Note request = note("impatient" + std::string(10'000, 'x'), 1'000'000);
    rpc::client_reader<Note> in(context,
                                [&](auto* reactor) { here.stub->async()->Count(&context, &request, reactor); });
    here.await_begun(1);
    here.await_ended();  // although the client reads nothing
    EXPECT_EQ(seen.expired, 1);
    EXPECT_FALSE(in.finish().ok());
  });
}

TEST_P(GrpcEnds, AStoppedFiberLeavesAStream) {
  run([&] {
    auto caller = spawn([&] {
      grpc::ClientContext context;
      rpc::client_reader_writer<Note, Note> peer(context,
                                                 [&](auto* reactor) { here.stub->async()->Chat(&context, reactor); });
      Note nothing;
      EXPECT_THROW(peer.read(nothing), operation_cancelled);
      EXPECT_THROW(peer.write(nothing), operation_cancelled);
      EXPECT_THROW(peer.finish(), operation_cancelled);
    });
    here.await_begun(1);
    caller.request_stop();
    caller.get();
    here.await_ended();
  });
}

// Otherwise the handler would wait for a note, and the client for the handler.
TEST_P(GrpcEnds, AnEndOfTheWritesThatComesTooLateCancelsTheCall) {
  run([&] {
    grpc::ClientContext context;
    Note sum;
    rpc::client_writer<Note> out(context, [&](auto* reactor) { here.stub->async()->Add(&context, &sum, reactor); });
    EXPECT_TRUE(out.write(note("x")));
    EXPECT_FALSE(try_for(5ms, [&] {
      for (const auto begun = steady_clock::now(); steady_clock::now() < begun + 10ms;) {
      }
      out.writes_done();
      return true;
    }));
    EXPECT_EQ(out.finish().error_code(), StatusCode::CANCELLED);
    here.await_ended();
  });
}

TEST_P(GrpcEnds, AnEndWaitsForWhatIsUnderWay) {
  run([&] {
    auto caller = spawn([&] { return here.say("wait"); });
    here.await_begun(1);
    auto end = spawn([&] { rpc::shutdown(*here.server, 5min); });
    served::poll([&] { return here.say("too late").starts_with("14: "); });  // UNAVAILABLE
    EXPECT_FALSE(end.done());
    here.service.go.set();
    EXPECT_EQ(caller.get(), "wait");
    end.get();
  });
}

TEST_P(GrpcEnds, AfterItsGraceAnEndCancelsWhatIsUnderWay) {
  run([&] {
    auto caller = spawn([&] { return here.say("wait"); });
    here.await_begun(1);
    const auto begun = steady_clock::now();
    rpc::shutdown(*here.server, 100ms);
    EXPECT_GE(steady_clock::now() - begun, 100ms);
    EXPECT_EQ(seen.ended, 1);
    EXPECT_EQ(seen.stopped, 1);
    const std::string told = caller.get();
    EXPECT_TRUE(told.starts_with("14: ") || told.starts_with("1: ")) << told;  // UNAVAILABLE or CANCELLED
    EXPECT_TRUE(here.say("too late").starts_with("14: "));
  });
}

// Calls with deadlines that are often too short, in fibers that are often asked to stop. An answer is right, or there
// is none.
TEST_P(GrpcEnds, AStormOfDeadlinesAndStops) {
  std::atomic<long> good{0}, ended{0}, wrong{0};
  std::atomic<bool> over{false};
  const auto one_call = [&](std::minstd_rand& random, const std::string& mine) {
    const deadline_scope limit(std::chrono::microseconds(500 + random() % (random() % 4 != 0 ? 8000 : 100'000)));
    if (random() % 4 != 0) {
      const std::string asked = random() % 2 ? mine : "sleep";
      const std::string told = here.say(asked, static_cast<int>(random() % 6000));
      ++(told == asked ? good : wrong);
      EXPECT_EQ(told, asked);  // the end of a deadline is an exception, and no status
      return;
    }
    grpc::ClientContext context;
    const Note request = note("", static_cast<int>(random() % 500));
    rpc::client_reader<Note> in(context,
                                [&](auto* reactor) { here.stub->async()->Count(&context, &request, reactor); });
    int expected = 0;
    for (Note each; in.read(each);) wrong += each.number() != expected++;
    if (in.finish().ok()) {
      ++good;
      wrong += expected != request.number();
    }
  };
  run([&] {
    task_group callers;
    for (int i = 0; i < 50; ++i)
      callers.spawn([&, i] {
        std::minstd_rand random(static_cast<unsigned>(i + 1));
        for (int n = 0; !over; ++n) {
          auto caller = spawn([&, n] { one_call(random, std::to_string(i) + "." + std::to_string(n)); });
          if (n % 3 == 0) {
            this_fiber::sleep_for(std::chrono::microseconds(n * 7919 % 4000));
            caller.request_stop();
          }
          caller.join();
          try {
            caller.get();
          } catch (const operation_cancelled&) {
            ++ended;
          }
        }
      });
    this_fiber::sleep_for(300ms);
    served::poll([&] { return good > 0 && ended > 0; });
    over = true;
    callers.wait();
    here.await_ended();
    EXPECT_EQ(here.say("after the storm"), "after the storm");
  });
  EXPECT_EQ(wrong, 0);
}

// The process that the next test starts and kills.
TEST(GrpcPeer, DISABLED_CallsUntilItIsKilled) {
  const char* const port = std::getenv("ULEXITE_TEST_GRPC_PORT");
  if (!port) GTEST_SKIP() << "another test runs this one";
  ulexite::run([&] {
    const auto stub = stub_for(std::atoi(port));
    scope([&](task_group& group) {
      for (int i = 0; i < 50; ++i)
        group.spawn([&] {
          grpc::ClientContext context;
          const Note request = note("wait");
          Note response;
          (void)rpc::call(context, [&](auto done) { stub->async()->Say(&context, &request, &response, done); });
        });
    });
  });
}

TEST_P(GrpcEnds, AKilledClientStopsItsHandlers) {
  run([&] {
    ::setenv("ULEXITE_TEST_GRPC_PORT", std::to_string(here.port).c_str(), 1);
    os::process client(
        {.arguments = {std::filesystem::read_symlink("/proc/self/exe"), "--gtest_also_run_disabled_tests",
                       "--gtest_filter=GrpcPeer.DISABLED_CallsUntilItIsKilled"},
         .out = os::stdio::null});
    here.await_begun(50);
    ASSERT_TRUE(client.kill(SIGKILL));
    EXPECT_EQ(client.wait().signal, SIGKILL);
    here.await_ended();
    EXPECT_EQ(seen.stopped, 50);
  });
}

}  // namespace
}  // namespace ulexite::test
