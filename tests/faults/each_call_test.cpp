// Each system call of a piece of work fails in its turn. The work may fail with an error, but it ends; nothing stays
// behind; and the same work without failures succeeds afterwards.

#include <ulexite.hpp>
#include <ulexite/testing/faults.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <system_error>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
using ulexite::testing::fault_scope;
using ulexite::testing::system_call;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// True: it has ended.
bool succeeds(const std::function<void()>& work, std::string& error) {
  try {
    work();
    return true;
  } catch (const std::exception& failed) {
    error = failed.what();
    return false;
  }
}

void fail_each_call_of(const std::function<void()>& work, std::size_t repeats = 1) {
  std::string error;
  ASSERT_TRUE(succeeds(work, error)) << error;  // what is made once in a process is made
  std::size_t calls = 0;
  {
    const fault_scope count(0);
    ASSERT_TRUE(succeeds(work, error)) << error;
    calls = count.calls();
  }
  const std::size_t before = open_descriptors();
  std::size_t failed = 0, told = 0;
  std::map<std::string, std::size_t> kinds;
  for (std::size_t number = 1; number <= calls + 5; ++number) {
    bool ended_well;
    {
      const fault_scope faults(number, repeats);
      ended_well = succeeds(work, error);
      for (int i = 0; i <= static_cast<int>(system_call::file_write); ++i)
        if (const auto kind = static_cast<system_call>(i); const std::size_t times = faults.failed(kind))
          kinds[to_string(kind)] += times, ++failed;
    }
    told += !ended_well;
    if (!ended_well) {
      EXPECT_FALSE(error.empty());
    }
    ASSERT_TRUE(succeeds(work, error)) << "after call " << number << " had failed: " << error;
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_GT(failed, 0u);
  std::string list;
  for (const auto& [kind, count] : kinds) list += " " + kind + " " + std::to_string(count);
  std::printf("%zu calls, %zu failures, of which %zu were told by an error:%s\n", calls, failed, told, list.c_str());
}

void start_and_spawn() {
  runtime rt({.threads = 4});
  const int sum = rt.run([] {
    channel<int> results(3);
    task_group group;
    for (int i = 0; i < 200; ++i)
      group.spawn([&, i] {
        if (i % 7 == 0) this_fiber::sleep_for(1ms);
        results.send(i);
      });
    int received = 0;
    for (int i = 0; i < 200; ++i) received += *results.receive();
    group.wait();
    return received;
  });
  if (sum != 199 * 200 / 2) std::abort();  // something was lost
}

void spawn_on_own_stacks() {
  runtime rt({.threads = 2});
  rt.run([] {
    std::vector<join_handle<int>> all;
    for (std::size_t i = 0; i < 40; ++i)
      all.push_back(spawn(fiber_options{.stack_size = (i % 2 == 0 ? 32u : 64u) * 1024}, [i] {
        this_fiber::yield();
        return static_cast<int>(i);
      }));
    int sum = 0;
    for (auto& each : all) sum += each.get();
    if (sum != 39 * 40 / 2) std::abort();
  });
}

void block() {
  runtime rt({.threads = 2, .blocking_threads = 3});
  rt.run([] {
    task_group group;
    std::atomic<int> done{0};
    for (int i = 0; i < 6; ++i) group.spawn([&] { blocking([&] { ++done; }); });
    for (int i = 0; i < 2; ++i) group.spawn([&] { block_in_place([&] { ++done; }); });
    group.wait();
    if (done.load() != 8) std::abort();
  });
}

void talk_over_tcp() {
  runtime rt({.threads = 2});
  rt.run([] {
    net::tcp_listener listener(net::endpoint::ip("127.0.0.1", 0));
    const auto at = listener.local_endpoint();
    task_group server;
    server.spawn([&] {
      task_group connections;
      listener.serve(connections,
                     [](net::tcp_stream& stream) {
                       char data[64];
                       while (const std::size_t got = stream.read_some(data, sizeof data)) stream.write(data, got);
                     },
                     {.on_error = [](const net::endpoint&, const std::exception_ptr&) {}});
    });
    std::exception_ptr failure;
    try {
      for (int i = 0; i < 2; ++i) {
        auto stream = net::tcp_stream::connect(at, {.timeout = 5s});
        stream.expires_after(5s);
        const std::string text = "message " + std::to_string(i);
        stream.write(text.data(), text.size());
        char answer[16];
        const std::size_t got = stream.read(answer, text.size());
        if (got != 0 && std::string(answer, got) != text.substr(0, got)) std::abort();
        if (got != text.size()) throw std::system_error(std::make_error_code(std::errc::connection_reset), "an answer");
      }
    } catch (...) {
      failure = std::current_exception();
    }
    listener.close();
    server.wait();
    if (failure) std::rethrow_exception(failure);
  });
}

void use_files() {
  runtime rt({.threads = 2});
  rt.run([] {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("ulexite_faults_" + std::to_string(::getpid()))).string();
    const struct removal {
      const std::string& path;
      ~removal() { std::filesystem::remove(path); }
    } at_exit{path};
    const std::string text(100'000, 'x');
    os::write_all(path, text);
    if (os::read_all(path) != text) std::abort();
  });
}

TEST(EachCallFails, StartAndSpawn) { fail_each_call_of(start_and_spawn); }
TEST(EachCallFails, StartAndSpawnThreeInARow) { fail_each_call_of(start_and_spawn, 3); }
TEST(EachCallFails, OwnStacks) { fail_each_call_of(spawn_on_own_stacks); }
TEST(EachCallFails, BlockingCalls) { fail_each_call_of(block); }
TEST(EachCallFails, Tcp) { fail_each_call_of(talk_over_tcp); }
TEST(EachCallFails, TcpThreeInARow) { fail_each_call_of(talk_over_tcp, 3); }
TEST(EachCallFails, Files) { fail_each_call_of(use_files); }

}  // namespace
