#include "contract/contract.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/no_suspend.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <semaphore>
#include <thread>

// docs/blocking.md says of each operation whether it waits, how the wait can end and where it may be called. These
// tests read the page, and hold it against the operations.
namespace {

using namespace ulexite;
using namespace ulexite::test;

// A row of the page, by its columns.
struct row {
  std::string section;
  std::vector<std::string> names;  // the first column, and its words in backticks
  std::string waits, cancellable, limit, job, mutex, destructor;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  const std::regex cell(R"(\| ([^|]*[^| ]) (?=\|))");
  for (std::sregex_iterator at(line.begin(), line.end(), cell), end; at != end; ++at) {
    std::string text = (*at)[1];
    std::erase(text, '*');
    cells.push_back(text);
  }
  return cells;
}

std::filesystem::path in_project(const std::string& file) {
  const std::string here = __FILE__;
  return here.substr(0, here.rfind("tests/")) + file;
}

std::vector<row> read_page() {
  std::ifstream page(in_project("docs/blocking.md"));
  EXPECT_TRUE(page) << "cannot read " << in_project("docs/blocking.md");
  std::vector<row> rows;
  std::string section;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("| ") || line.starts_with("| operation") || line.starts_with("| ---") || section.empty())
      continue;
    const auto cells = cells_of(line);
    if (cells.size() != 7) {
      ADD_FAILURE() << "not seven columns: " << line;
      continue;
    }
    row made{section, {cells[0]}, cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]};
    const std::regex word("`([^`]*)`");
    for (std::sregex_iterator at(cells[0].begin(), cells[0].end(), word), end; at != end; ++at)
      made.names.push_back((*at)[1]);
    rows.push_back(std::move(made));
  }
  return rows;
}

const std::vector<row>& page() {
  static const std::vector<row> rows = read_page();
  return rows;
}

bool has_name(const row& of, const operation& what) {
  return of.section == what.section && std::ranges::count(of.names, what.name) > 0;
}

bool starts_with_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return text.starts_with(word); });
}

class Contract : public OneRuntimeTest, public testing::WithParamInterface<operation> {
 protected:
  Contract() : OneRuntimeTest(2) {
    const auto found = std::ranges::count_if(page(), [&](const row& each) { return has_name(each, GetParam()); });
    EXPECT_EQ(found, 1) << "rows of docs/blocking.md, section " << GetParam().section << ", that have `"
                        << GetParam().name << "`";
  }
  ~Contract() override {
    run([&] { drop(); });
  }

  const row& promised() {
    return *std::ranges::find_if(page(), [&](const row& each) { return has_name(each, GetParam()); });
  }

  // The calls, in a new state.
  calls& fresh() {
    run([&] {
      drop();
      calls_ = GetParam().make();
    });
    return calls_;
  }

 private:
  // Ends what may wait for the release.
  void drop() {
    if (calls_.release) calls_.release();
    calls_ = {};
  }

  calls calls_;
};

// What ends `call` in a fiber that is asked to stop before it.
bool is_refused_to_a_stopped_fiber(runtime& rt, const std::function<void()>& call) {
  std::atomic<bool> go{false};
  auto handle = rt.spawn([&] {
    while (!go) this_fiber::yield();  // no cancellation point
    call();
  });
  handle.request_stop();
  go = true;
  try {
    handle.get();
    return false;
  } catch (const operation_cancelled&) {
    return true;
  }
}

// Once the deadline has been seen to have passed: an operation that does not have to wait does not read the clock.
bool is_refused_after_the_deadline(runtime& rt, const std::function<void()>& call) {
  return rt.run([&] {
    const deadline_scope late(-1s);
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    try {
      call();
      return false;
    } catch (const deadline_exceeded&) {
      return true;
    }
  });
}

// no_suspend_scope refuses each wait.
bool has_to_wait(runtime& rt, const std::function<void()>& call) {
  return rt.run([&] {
    try {
      const no_suspend_scope stays;
      call();
      return false;
    } catch (const usage_error&) {
      return true;
    }
  });
}

TEST_P(Contract, WaitsAsThePageSays) {
  const std::string& says = promised().waits;
  const calls& on = fresh();
  if (starts_with_one_of(promised().job, {"yes", "if "}))
    EXPECT_FALSE(has_to_wait(rt(), on.ready)) << "although it is ready";
  const bool may_wait =
      !starts_with_one_of(says, {"no", "may yield", "lets others run", "blocks", "lends", "let others run"});
  if (!on.waiting) {
    EXPECT_EQ(on.sometimes, may_wait) << "this test has no state in which it waits; the page: " << says;
    return;
  }
  if (on.refusable) EXPECT_TRUE(has_to_wait(rt(), fresh().waiting)) << "the page: " << says;
  EXPECT_TRUE(may_wait) << says;
  EXPECT_TRUE(promised().mutex.starts_with("no")) << "it waits, with a std::mutex: " << promised().mutex;
}

// Only what never waits is called repeatedly.
TEST_P(Contract, YieldsAsThePageSays) {
  const std::string& says = promised().waits;
  const calls& on = fresh();
  if (on.waiting || on.sometimes) return;
  runtime& alone = make(1);
  const bool yields = alone.run([&] {
    std::atomic<bool> other{false};
    auto fiber = spawn([&] { other = true; });
    for (int i = 0; i < 300 && !other; ++i) on.ready();
    const bool seen = other;
    fiber.join();
    return seen;
  });
  if (says.starts_with("no")) EXPECT_FALSE(yields) << says;
  if (starts_with_one_of(says, {"may yield", "lets others run", "let others run"})) EXPECT_TRUE(yields) << says;
  if (promised().mutex.starts_with("yes")) EXPECT_FALSE(yields) << "it yields, with a std::mutex: " << promised().mutex;
}

TEST_P(Contract, IsCancellableAsThePageSays) {
  const std::string& says = promised().cancellable;
  const bool cancellable = starts_with_one_of(says, {"yes", "until", "before"});
  const bool although_ready = cancellable && !says.ends_with("if it has to wait");
  EXPECT_EQ(is_refused_to_a_stopped_fiber(rt(), fresh().ready), although_ready) << says;
  EXPECT_EQ(is_refused_after_the_deadline(rt(), fresh().ready), although_ready) << says;
  // Destructors are noexcept.
  EXPECT_EQ(promised().destructor.starts_with("shield"), cancellable || says.starts_with("while"))
      << promised().destructor;
}

TEST_P(Contract, ADeadlineEndsItsWaitAsThePageSays) {
  const calls& on = fresh();
  if (!on.waiting || !starts_with_one_of(promised().cancellable, {"yes", "while"})) return;
  run([&] {
    const deadline_scope soon(1ms);
    EXPECT_THROW(on.waiting(), deadline_exceeded);
  });
}

TEST_P(Contract, AStopEndsItsWaitAsThePageSays) {
  const calls& on = fresh();
  if (!on.waiting) return;
  const std::string& says = promised().cancellable;
  const bool cancellable = starts_with_one_of(says, {"yes", "while"});
  auto waiter = spawn_until_it_waits(rt(), [&] {
    const deadline_scope limit(says.starts_with("no") ? -1h : 1h);  // a deadline ends no more than a stop does
    on.waiting();
  });
  EXPECT_FALSE(waiter.done());
  wait_until([&] { return rt().metrics().blocking_queued == 0; });  // a thread of the pool has begun
  waiter.request_stop();
  if (cancellable) {
    EXPECT_THROW(waiter.get(), operation_cancelled) << says;
  } else {
    wait_until_all_wait(rt());
    EXPECT_FALSE(waiter.done()) << says;
    ASSERT_TRUE(on.release) << "only a stop ends it, says the test; the page: " << says;
    run(on.release);
    EXPECT_NO_THROW(waiter.get());
  }
  if (!on.release) return;
  run(on.release);
  const calls& again = fresh();
  auto served = spawn_until_it_waits(rt(), again.waiting);
  run(again.release);
  EXPECT_NO_THROW(served.get());
}

// A job may call what needs no wait, unless the page says no.
TEST_P(Contract, JobsMayCallItAsThePageSays) {
  const std::string& says = promised().job;
  if (starts_with_one_of(says, {"no", "-"}) && !says.starts_with("nothing")) return;
  struct calling : job {
    const std::function<void()>* call;
    bool refused = false;
    std::string failure;
    std::binary_semaphore done{0};
  } one;
  one.call = &fresh().ready;
  one.run = [](job* self) noexcept {
    auto& here = *static_cast<calling*>(self);
    try {
      (*here.call)();
    } catch (const usage_error&) {
      here.refused = true;
    } catch (const std::exception& e) {
      here.failure = e.what();
    }
    here.done.release();
  };
  rt().schedule(one);
  one.done.acquire();
  EXPECT_EQ(one.refused, says.starts_with("`usage_error`")) << says;
  EXPECT_EQ(one.failure, "") << says;
}

// "spawn, schedule, current_runtime and functions that use them", says the page.
bool uses_spawn(const std::string& name) {
  for (const char* each : {"current_runtime", "task_group", "task_group::try_spawn", "output_of"})
    if (name == each) return true;
  return false;
}

TEST_P(Contract, PlainThreadsMayCallItAsThePageSays) {
  const calls& on = fresh();
  const bool needs_runtime =
      promised().waits.find("`errc::no_runtime`") != std::string::npos || uses_spawn(GetParam().name);
  const bool needs_fiber = GetParam().name == "this_fiber::migrate_to" || GetParam().name == "set_user_data";
  try {
    on.ready();
    EXPECT_FALSE(needs_runtime || needs_fiber);
  } catch (const usage_error&) {
    EXPECT_TRUE(needs_fiber);
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), errc::no_runtime);
    EXPECT_TRUE(needs_runtime);
  }
}

std::string name_of(const testing::TestParamInfo<operation>& info) {
  return std::regex_replace(info.param.section + "_" + info.param.name, std::regex("[^A-Za-z0-9]+"), "_") + "_" +
         std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Operations, Contract, testing::ValuesIn(operations()), name_of);

// Those that other tests hold to their row, because they end what a test stands on, or need what is not here.
const std::map<std::string, std::string> elsewhere{
    {"~ticker", "sync/ticker_test.cpp"},
    {"become_fiber", "runtime/become_fiber_test.cpp"},
    {"run_in", "runtime/concurrent_context_test.cpp"},
    {"runtime::run", "runtime/run_test.cpp"},
    {"runtime::shutdown", "runtime/shutdown_test.cpp"},
    {"stopped_world", "runtime/stopped_world_test.cpp"},
    {"~parallel_context", "runtime/concurrent_context_test.cpp"},
    {"~process", "os/process_test.cpp"},
    {"resolve", "net/resolve_test.cpp"},
    {"`tcp_stream::connect` to an `address`", "net/address_test.cpp"},
    {"tcp_listener::listen", "net/address_test.cpp"},
    {"tcp_listener::serve", "net/serve_test.cpp"},
    {"inherited_descriptors", "net/inherited_test.cpp"},
    {"address::resolve", "net/address_test.cpp"},
    {"co_await", "coroutine/task_test.cpp"},
    {"co_readable", "coroutine/net_test.cpp"},
    {"this_fiber::yield_if_requested", "sync/this_fiber_test.cpp"},
    {"await", "coroutine/foreign_test.cpp"},
    {"on_fiber", "coroutine/foreign_test.cpp"},
    {"tls_stream", "net/tls_test.cpp"},
    {"tls_context", "net/tls_context_test.cpp"},
    {"curl_multi::next", "net/libcurl_test.cpp"},
};

TEST(ContractPage, TheOtherTestsAreThere) {
  for (const auto& [name, file] : elsewhere)
    EXPECT_TRUE(std::filesystem::exists(in_project("tests/" + file))) << file << ", for " << name;
}

TEST(ContractPage, EachRowIsHeldAgainstItsOperations) {
  for (const row& each : page()) {
    const bool here = std::ranges::any_of(operations(), [&](const operation& what) { return has_name(each, what); });
    const bool there =
        std::ranges::any_of(each.names, [](const std::string& name) { return elsewhere.contains(name); });
    EXPECT_TRUE(here || there) << "no test has the row of " << (each.names.front());
    EXPECT_FALSE(here && there) << "this test has " << each.names.front();
  }
}

// What may wait or yield changes the thread, and what throws a cancellation ends the program in a destructor.
TEST(ContractPage, ItsColumnsAgree) {
  for (const row& each : page()) {
    const std::string& name = each.names.front();
    if (starts_with_one_of(each.waits, {"yes", "may yield", "lets others run", "while", "until"}))
      EXPECT_FALSE(each.mutex.starts_with("yes")) << name;
    if (each.cancellable.starts_with("yes")) EXPECT_FALSE(each.destructor.starts_with("yes")) << name;
    if (each.destructor == "shield") EXPECT_FALSE(each.cancellable == "no") << name;
  }
}

}  // namespace
