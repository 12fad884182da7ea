// What is called without co_await keeps the stack while it waits, in a coroutine too: above all the calls of the table
// in docs/coroutines.md of those that have no awaitable.

#include "select_awaitables.hpp"

#include <ulexite/runtime/block_in_place.hpp>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using namespace ulexite::test::awaitables;

struct pipe_ends {
  os::pipe_reader from;
  os::pipe_writer to;
  os::input_stream standard = [this] {
    int both[2];
    EXPECT_EQ(::pipe2(both, O_CLOEXEC), 0);
    from = os::pipe_reader::adopt(both[0]);
    to = os::pipe_writer::adopt(both[1]);
    return os::input_stream::share(from.native_handle(), "a pipe");
  }();
};
struct unix_datagrams {
  net::unix_datagram here, there;
  unix_datagrams() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, both), 0);
    here = net::unix_datagram::adopt(both[0]);
    there = net::unix_datagram::adopt(both[1]);
  }
};
struct program {
  os::process of{{.arguments = {"cat"}, .in = os::stdio::pipe}};
};
struct signals {
  os::signal_set of{SIGUSR1};
};
using gate = std::counting_semaphore<>;

// A wait for an event that another fiber or thread sets.
template <class Wait>
auto over_event(Wait wait) {
  return over<ulexite::event>(
      [wait](ulexite::event& go) -> task<> {
        wait([&go] { go.wait(); });
        co_return;
      },
      [](ulexite::event& go) { go.set(); });
}
// A call that waits on an object.
template <class Object, class Call, class Let, class... A>
auto call_on(Call call, Let let, A... arguments) {
  return over<Object>(
      [call](Object& of) -> task<> {
        call(of);
        co_return;
      },
      let, arguments...);
}

void add_io(std::vector<awaitable_kind>& to) {
  const auto write = [](streams& of) { of.far.write("x\n"); };
  const auto send = [](auto& of) { of.there.send_to("x", of.here.local_endpoint()); };
  const auto fill = [](pipe_ends& of) { of.to.write("x"); };
  const auto receive = [](auto& of) {
    char got[10];
    EXPECT_EQ(of.here.receive(got, sizeof got), 1u);
  };
  to.push_back({"unix stream", "", true,
                call_on<streams>(
                    [](streams& of) {
                      char got[2];
                      EXPECT_EQ(of.near.read(got, sizeof got), 2u);
                    },
                    write)});
  to.push_back(
      {"buffered_reader", "", true,
       call_on<streams>([](streams& of) { EXPECT_EQ(net::buffered_reader(of.near).read_line(), "x"); }, write)});
  to.push_back({"buffered_writer", "", true,
                call_on<full_streams>(
                    [](streams& of) {
                      net::buffered_writer out(of.near);
                      out.write("y");
                      out.flush();
                    },
                    [](full_streams& of) { of.drain(); })});
  to.push_back({"datagram", "", true, call_on<datagrams>(receive, send)});
  to.push_back(
      {"unix datagram", "", true, call_on<unix_datagrams>(receive, [](unix_datagrams& of) { of.there.send("x"); })});
  to.push_back({"wait_fd", "", true,
                call_on<streams>(
                    [](streams& of) {
                      EXPECT_EQ(net::wait_fd(of.near.native_handle(), net::interest::read), net::interest::read);
                    },
                    write)});
  to.push_back({"wait_any", "", true,
                call_on<streams>(
                    [](streams& of) {
                      net::fd_interest fds[] = {{of.near.native_handle()}, {of.near.native_handle()}};
                      EXPECT_EQ(net::wait_any(fds), 2u);
                    },
                    write)});
  to.push_back({"serve", "", true,
                call_on<listening>(
                    [](listening& of) {
                      task_group clients;
                      of.at.serve(clients, [](net::tcp_stream&) {});
                    },
                    [](listening& of) { of.at.close(); })});
  const auto read_byte = [](auto end) {
    return [end](pipe_ends& of) {
      char got;
      EXPECT_EQ((of.*end).read_some(&got, 1), 1u);
    };
  };
  to.push_back({"pipe", "", true, call_on<pipe_ends>(read_byte(&pipe_ends::from), fill)});
  to.push_back({"input_stream", "", true, call_on<pipe_ends>(read_byte(&pipe_ends::standard), fill)});
  to.push_back({"process", "", true,
                call_on<program>([](program& of) { EXPECT_TRUE(of.of.wait().success()); },
                                 [](program& of) { of.of.in().close(); })});
  to.push_back({"signal_set", "", true,
                call_on<signals>([](signals& of) { EXPECT_EQ(of.of.receive(), SIGUSR1); },
                                 [](signals&) { EXPECT_EQ(::raise(SIGUSR1), 0); })});
}

void add_groups(std::vector<awaitable_kind>& to) {
  to.push_back({"when_all", "", true, over_event([](auto go) { when_all(go, [] {}); })});
  to.push_back({"when_any", "", true, over_event([](auto go) { EXPECT_LT(when_any(go, go).index, 2u); })});
  to.push_back({"join_set", "", true, over_event([](auto go) {
                  join_set<int> children;
                  children.spawn([&] {
                    go();
                    return 1;
                  });
                  EXPECT_EQ(children.next(), 1);
                })});
  to.push_back({"limit of a group", "", true, over_event([](auto go) {
                  task_group children(on_error::cancel_siblings, 1);
                  children.spawn(go);
                  children.spawn([] {});
                  children.wait();
                })});
  to.push_back({"selector", "", true,
                call_on<channel<int>>(
                    [](channel<int>& from) {
                      selector<int> all;
                      all.add_receive(from);
                      EXPECT_EQ(all.wait().value, 1);
                    },
                    put, 1u)});
  to.push_back({"broadcast", "", true,
                call_on<heard>(
                    [](heard& it) {
                      int got = 0;
                      EXPECT_EQ(it.from.receive_for(got, 1h), channel_status::ok);
                    },
                    [](heard& it) { it.to.send(1); })});
  to.push_back(
      {"future", "", false,
       call_on<result_of_a_promise>([](auto& it) { EXPECT_EQ(it.mine.wait_for(1h), std::future_status::ready); },
                                    [](auto& it) { it.of.set_value(1); })});
  to.push_back({"join_handle", "", false, over_child([](child& of) -> task<> {
                  EXPECT_TRUE(of.handle.wait_for(1h));
                  co_return;
                })});
}

void add_kept_locks(std::vector<awaitable_kind>& to) {
  const auto let = [](auto& of) { of.let(); };
  const auto lock = [](auto& of) { const std::lock_guard mine(of.guard); };
  to.push_back({"timed_mutex", "", false,
                call_on<held<timed_mutex>>(
                    [](auto& of) {
                      const std::unique_lock mine(of.guard, 1h);
                      EXPECT_TRUE(mine.owns_lock());
                    },
                    let)});
  to.push_back({"recursive_mutex", "", false, call_on<held<recursive_mutex>>(lock, let)});
  to.push_back({"shared_mutex", "", false,
                call_on<held<shared_mutex>>(
                    [](auto& of) {
                      EXPECT_TRUE(of.guard.try_lock_for(1h));
                      of.guard.unlock();
                    },
                    let)});
  to.push_back({"condition_variable_any", "", true, over_event([](auto go) {
                  timed_mutex guard;
                  condition_variable_any changed;
                  bool done = false;
                  task_group others;
                  others.spawn([&] {
                    go();
                    const std::lock_guard here(guard);
                    done = true;
                    changed.notify_all();
                  });
                  std::unique_lock mine(guard);
                  EXPECT_TRUE(changed.wait_for(mine, 1h, [&] { return done; }));
                })});
  to.push_back({"synchronized", "", false, over_event([](auto go) {
                  synchronized<int> value;
                  task_group both;
                  const auto hold = [&] { value.with_lock([&](int& of) { go(), ++of; }); };
                  both.spawn(hold);
                  hold();
                  both.wait();
                  EXPECT_EQ(value.copy(), 2);
                })});
  to.push_back({"call_once", "", false, over_event([](auto go) {
                  once_flag flag;
                  task_group both;
                  both.spawn([&] { call_once(flag, go); });
                  call_once(flag, go);
                  both.wait();
                })});
}

std::vector<awaitable_kind> kept_kinds() {
  std::vector<awaitable_kind> all;
  add_io(all);
  add_groups(all);
  add_kept_locks(all);
  return all;
}

class AsItIs : public WorkersTest {
 protected:
  // Calls body(object) for each kind that is wanted.
  template <class F>
  void for_each(F body, bool only_cancellable = false) {
    for (const awaitable_kind& kind : kept_kinds()) {
      if (only_cancellable && !kind.cancellable) continue;
      SCOPED_TRACE(kind.name);
      const auto made = kind.make(rt());
      body(*made);
    }
  }
};
ULEXITE_TEST_WORKERS(AsItIs);

// Between waits without a stack, so that the stack is another each time.
task<> in_the_middle(awaitable& of) {
  co_await co_yield_now();
  co_await of.wait();
  co_await co_sleep_for(1us);
}

TEST_P(AsItIs, CallsThatNeedNotWaitReturn) {
  for_each([&](awaitable& at) {
    at.let();
    co_spawn(rt(), in_the_middle(at)).get();
  });
}

TEST_P(AsItIs, CallsWaitInTheMiddleOfATask) {
  for_each([&](awaitable& at) {
    auto waits = spawn_until_it_waits(rt(), [&] { return in_the_middle(at); });
    EXPECT_FALSE(waits.done());
    at.let();
    waits.get();
  });
}

TEST_P(AsItIs, AStopEndsTheWait) {
  for_each([&](awaitable& at) { expect_stop_ends(rt(), [&] { return in_the_middle(at); }); }, true);
}

TEST_P(AsItIs, ADeadlineEndsTheWait) {
  for_each(
      [&](awaitable& at) {
        EXPECT_THROW(rt().spawn([&]() -> task<> {
                           const deadline_scope limit(200us);
                           co_await in_the_middle(at);
                         })
                         .get(),
                     deadline_exceeded);
      },
      true);
}

TEST_P(AsItIs, CallsOfThePoolAndForksReturnInATask) {
  net::tcp_listener listener(loopback());
  const std::filesystem::path path = testing::TempDir() + "ulexite_as_it_is." + std::to_string(::getpid());
  EXPECT_EQ(co_spawn(rt(),
                     [](net::tcp_listener& at, const std::filesystem::path& file) -> task<std::string> {
                       const int two = blocking([] { return 2; });
                       co_await co_yield_now();
                       EXPECT_EQ(block_in_place([&] { return two + 1; }), 3);
                       co_await co_yield_now();
                       EXPECT_FALSE(net::resolve("localhost", "80").empty());
                       const auto stream =
                           net::tcp_stream::connect(net::address("127.0.0.1", at.local_endpoint().port()));
                       EXPECT_TRUE((co_await co_accept(at)).is_open());
                       EXPECT_EQ(parallel_reduce(0, 300, 0, [](int i) { return i; }, std::plus<>{}), 299 * 300 / 2);
                       ticker often(50us);
                       for (int i = 0; i < 3; ++i) EXPECT_TRUE(often.channel().receive());
                       EXPECT_TRUE(co_await co_receive(often.channel()));
                       os::write_all(file, "text");
                       co_await co_yield_now();
                       co_return os::read_all(file);
                     }(listener, path))
                .get(),
            "text");
  std::filesystem::remove(path);
}

}  // namespace
