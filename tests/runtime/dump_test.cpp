// The report of a dump about fibers in all their states. That nothing goes wrong while they move is dump_stress's.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <latch>
#include <sstream>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

std::string dump(const runtime& rt, const dump_options& options = {}) {
  std::ostringstream text;
  rt.dump(text, options);
  return text.str();
}

std::string dump_json(const runtime& rt, const dump_options& options = {}) {
  std::ostringstream text;
  rt.dump_json(text, options);
  return text.str();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class Dump : public WorkersTest {};
INSTANTIATE_TEST_SUITE_P(Workers, Dump, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(Dump, TellsWhatAFiberWaitsForAndWhereItCameFrom) {
  runtime& rt = this->rt();
  rt.run([&] {
    channel<int> values;
    auto reader = spawn({.name = "reader"}, [&] { values.receive(); });
    const auto line = std::to_string(__LINE__ - 1);
    wait_until_others_wait();
    const std::string text = dump(rt);
    EXPECT_TRUE(has(text, "\"reader\": waits ")) << text;
    EXPECT_TRUE(has(text, "to receive from channel 0x")) << text;
    EXPECT_TRUE(has(text, "dump_test.cpp:" + line + " in ")) << text;
    EXPECT_TRUE(has(text, "\"main\"")) << text;
    values.send(1);
    reader.join();
  });
}

TEST_P(Dump, TellsHowManyValuesAFullChannelHolds) {
  runtime& rt = this->rt();
  rt.run([&] {
    channel<std::string> two(2), one(1);
    for (channel<std::string>* const each : {&one, &two, &two}) each->send("x");
    task_group senders;
    senders.spawn([&] { two.send("y"); });
    senders.spawn([&] { one.send("y"); });
    wait_until_others_wait();
    const std::string text = dump(rt, {.backtraces = false}) + dump_json(rt);
    EXPECT_TRUE(has(text, ", full with 2 values\n")) << text;
    EXPECT_TRUE(has(text, ", full with 1 value\"")) << text;
    for (channel<std::string>* const each : {&one, &two}) each->receive();
    senders.wait();
  });
}

TEST_P(Dump, TellsWhoseCallsThePoolRuns) {
  runtime& rt = this->rt();
  rt.run([&] {
    std::latch begun(1), enough(1);
    auto caller = spawn({.name = "caller"}, [&] {
      blocking([&] {
        begun.count_down();
        enough.wait();
      });
    });
    wait_until([&] { return begun.try_wait(); });
    const std::string text = dump(rt), json = dump_json(rt), what = ": runs a blocking call ";
    EXPECT_TRUE(has(text, what + "of fiber #")) << text;
    EXPECT_TRUE(has(text, "\"caller\" for ")) << text;
    EXPECT_TRUE(has(json, "\"blocking_calls\":[{\"thread\":")) << json;
    enough.count_down();
    caller.join();
    EXPECT_FALSE(has(dump(rt), what));
  });
}

// More of them than a dump lists, and than there are places in the table.
TEST_P(Dump, TellsOfPlainThreadsThatWait) {
  runtime& rt = this->rt();
  rt.run([&] {
    channel<int> values;
    std::ostringstream words;
    words << " to receive from channel " << &values;
    std::vector<std::thread> threads;
    threads.emplace_back([&] { values.receive(); });
    wait_until([&] { return has(dump(rt), words.str()); });
    EXPECT_TRUE(has(dump(rt), "  plain thread ")) << dump(rt);
    EXPECT_TRUE(has(dump_json(rt), "\"waiting_threads\":[{\"thread\":")) << dump_json(rt);
    values.send(1);
    for (int i = 0; i < 70; ++i) threads.emplace_back([&] { values.receive(); });
    wait_until([&] { return has(dump(rt), " more plain threads that wait\n"); });
    values.close();
    for (std::thread& each : threads) each.join();
    EXPECT_FALSE(has(dump(rt), words.str())) << dump(rt);
  });
}

TEST_P(Dump, HasThePlaceOfASpawnWithArguments) {
  runtime& rt = this->rt();
  rt.run([&] {
    channel<int> values;
    auto reader = spawn([](channel<int>& from) { from.receive(); }, std::ref(values));
    wait_until_others_wait();
    const std::string text = dump(rt);
    EXPECT_TRUE(has(text, "spawned at ")) << text;
    EXPECT_TRUE(has(text, "(unit_runtime+0x")) << text;
    values.send(1);
    reader.join();
  });
}

TEST_P(Dump, UnwindsWhatWaits) {
  runtime& rt = this->rt();
  rt.run([&] {
    channel<int> values;
    auto reader = spawn([&] { values.receive(); });
    wait_until_others_wait();
    EXPECT_TRUE(has(dump(rt), "ulexite::channel<int>::receive"));
    EXPECT_FALSE(has(dump(rt, {.backtraces = false}), "ulexite::channel<int>::receive"));
    values.send(1);
    reader.join();
  });
}

TEST_P(Dump, PutsFibersAtTheSamePlaceIntoOneGroup) {
  runtime& rt = this->rt();
  rt.run([&] {
    event ready;
    task_group all;
    for (int i = 0; i < 100; ++i) all.spawn([&] { ready.wait(); });
    all.spawn({.name = "another"}, [&] { ready.wait(); });
    wait_until_others_wait();
    const std::string text = dump(rt);
    EXPECT_TRUE(has(text, " and 99 more alike (#")) << text;
    EXPECT_TRUE(has(text, "\"another\": waits ")) << text;
    const std::string cut = dump(rt, {.max_groups = 1});
    EXPECT_TRUE(has(cut, " more fibers are in other groups")) << cut;
    ready.set();
    all.wait();
  });
}

[[gnu::noinline]] void wait_here(event& until) {
  until.wait();
  asm volatile("");  // no tail call
}
[[gnu::noinline]] void wait_there(event& until) {
  until.wait();
  asm volatile("");
}

TEST_P(Dump, KeepsBacktracesOfOneDepthApart) {
  runtime& rt = this->rt();
  rt.run([&] {
    event ready;
    task_group all;
    for (const auto function : {wait_here, wait_there}) all.spawn([&ready, function] { function(ready); });
    wait_until_others_wait();
    const std::string text = dump(rt);
    EXPECT_TRUE(has(text, "wait_here(") && has(text, "wait_there(")) << text;
    ready.set();
    all.wait();
  });
}

TEST_P(Dump, NamesACircleOfMutexesAndItsMembers) {
  runtime& rt = this->rt();
  rt.run([&] {
    mutex first;
    event held, enough;
    auto holder = spawn({.name = "holder"}, [&] {
      const std::lock_guard lock(first);
      held.set();
      enough.wait();
    });
    held.wait();
    auto waiter = spawn({.name = "waiter"}, [&] { const std::lock_guard lock(first); });
    wait_until_others_wait();
    const std::string text = dump(rt);
    EXPECT_TRUE(has(text, "\"holder\" holds mutex 0x")) << text;
    EXPECT_TRUE(has(text, "for which 1 fiber waits")) << text;
    EXPECT_TRUE(has(text, "to wait") || has(text, "for event 0x")) << text;
    EXPECT_TRUE(has(text, "holds 1 lock")) << text;
    enough.set();
    holder.join();
    waiter.join();
  });
}

TEST_P(Dump, TellsOfFibersThatHaveNotStarted) {
  runtime& rt = this->rt();
  rt.run([&] {
    std::atomic<bool> enough{false};
    task_group hogs;
    for (std::size_t i = 1; i < GetParam(); ++i)
      hogs.spawn([&] {
        while (!enough) std::this_thread::yield();
      });
    auto fresh = spawn({.name = "fresh"}, [] {});
    const std::string text = dump(rt);
    if (GetParam() == 1) {
      EXPECT_TRUE(has(text, "\"fresh\": not started yet")) << text;
      // A build that moves fibers about at every opportunity may have put it there.
      EXPECT_TRUE(has(text, "1 queued") || has(text, "1 in the shared queue")) << text;
    }
    EXPECT_TRUE(has(text, "runs fiber #")) << text;
    enough = true;
    fresh.join();
    hogs.wait();
  });
}

TEST_P(Dump, MayBeAskedForByAThread) {
  runtime& rt = this->rt();
  event enough;
  auto waiter = rt.spawn({.name = "waiter"}, [&] { enough.wait(); });
  while (rt.metrics().dispatches == 0 || rt.metrics().workers_sleeping < rt.metrics().workers)
    std::this_thread::yield();
  EXPECT_TRUE(has(dump(rt), "\"waiter\": waits "));
  enough.set();
  waiter.join();
  EXPECT_TRUE(has(dump(rt), "0 fibers, "));
}

TEST_P(Dump, TellsOfAFiberThatWasAskedToStop) {
  runtime& rt = this->rt();
  rt.run([&] {
    event enough;
    auto stubborn = spawn({.name = "stubborn"}, [&] {
      const shield uninterrupted;
      enough.wait();
    });
    wait_until_others_wait();
    stubborn.request_stop();
    EXPECT_TRUE(has(dump(rt), "was asked to stop"));
    enough.set();
    stubborn.join();
  });
}

TEST_P(Dump, AsJsonIsWellFormedWhateverTheNames) {
  runtime& rt = this->rt();
  rt.run([&] {
    event enough;
    auto odd = spawn({.name = "a \"quoted\"\\\n name"}, [&] { enough.wait(); });
    wait_until_others_wait();
    const std::string text = dump_json(rt);
    EXPECT_TRUE(has(text, R"("name":"a \"quoted\"\\\u000a name")")) << text;
    EXPECT_TRUE(has(text, R"("state":"waiting")")) << text;
    EXPECT_TRUE(has(text, R"("waits":"for event 0x)")) << text;
    EXPECT_EQ(std::ranges::count(text, '{'), std::ranges::count(text, '}'));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1);
    enough.set();
    odd.join();
  });
}

TEST_P(Dump, IsUtf8AsJson) {
  const std::pair<const char*, const char*> names[] = {
      {"\x7f\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",  // the first and last of each size
       "\x7f\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
      {"\xff lone \xaa", R"(\ufffd lone \ufffd)"},
      {"too long: \xc0\xaf", R"(too long: \ufffd\ufffd)"},
      {"a surrogate: \xed\xa0\x80", R"(a surrogate: \ufffd\ufffd\ufffd)"},
      {"too large: \xf4\x90\x80\x80", R"(too large: \ufffd\ufffd\ufffd\ufffd)"},
      {"\xe8\xaa, cut", R"(\ufffd\ufffd, cut)"},
      {"cut \xe8", R"(cut \ufffd)"},
  };
  runtime& rt = this->rt();
  rt.run([&] {
    for (const auto& [name, written] : names) {
      this_fiber::set_name(name);
      EXPECT_TRUE(has(dump_json(rt), "\"name\":\"" + std::string(written) + '"')) << written;
    }
  });
}

TEST_P(Dump, AsMetricsCountsWhatWaitsByKind) {
  runtime& rt = this->rt();
  rt.run([&] {
    event enough;
    task_group all;
    for (int i = 0; i < 3; ++i) all.spawn([&] { enough.wait(); });
    wait_until_others_wait();
    std::ostringstream text;
    rt.write_prometheus(text);
    EXPECT_TRUE(has(text.str(), "ulexite_fibers_waiting{kind=\"event\"} 3\n")) << text.str();
    EXPECT_TRUE(has(text.str(), "ulexite_fibers_waiting{kind=\"mutex\"} 0\n"));
    EXPECT_TRUE(has(text.str(), "# TYPE ulexite_dispatches_total counter\nulexite_dispatches_total "));
    EXPECT_TRUE(has(text.str(), "ulexite_worker_queued{worker=\"0\"} "));
    EXPECT_TRUE(has(text.str(), "\nulexite_lost_wakeups_total 0\n"));
    enough.set();
    all.wait();
  });
  const std::string lines = to_string(rt.metrics());
  EXPECT_TRUE(has(lines, "fibers_spawned 4\n")) << lines;
  for (const runtime_metric& each : rt.metrics().list())
    EXPECT_TRUE(has(lines, std::string(each.name) + ' ')) << each.name;
}

[[gnu::noinline]] void block_here(std::latch& until) {
  until.wait();
  asm volatile("");
}
class LongBlockingCalls : public RuntimeTest {};

TEST_F(LongBlockingCalls, HaveABacktraceIfItIsWanted) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer puts signals off";
  runtime& rt = make(1);
  rt.run([&] {
    std::latch enough(1);
    auto caller = spawn([&] { blocking([&] { block_here(enough); }); });
    const auto text = [&](bool stuck) { return dump(rt, {.backtraces = false, .stuck_backtraces = stuck}); };
    wait_until([&] { return has(text(false), " for 1."); });  // seconds
    EXPECT_FALSE(has(text(false), "block_here("));
    EXPECT_TRUE(has(text(true), "block_here(")) << text(true);
    enough.count_down();
    caller.join();
  });
}

// A child of fork() has the table of its parent's threads, but not the threads.
TEST(DumpInAChild, LeavesOutTheThreadsOfItsParent) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer starts no thread in a forked child";
  const auto tells = [] { return has(dump(runtime({.threads = 1})), "  plain thread "); };
  channel<int> values;
  std::thread waiting([&] { values.receive(); });
  while (!tells()) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(tells() ? 1 : 0);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  values.close();
  waiting.join();
}

TEST(DumpOfAnEndedRuntime, IsRefused) {
  runtime rt({.threads = 1});
  rt.run([] {});
  rt.shutdown(shutdown_mode::drain);
  std::ostringstream text;
  EXPECT_THROW(rt.dump(text), usage_error);
  EXPECT_THROW(rt.dump_json(text), usage_error);
  EXPECT_THROW(rt.write_prometheus(text), usage_error);
  EXPECT_EQ(text.str(), "");
}

}  // namespace
