// Servers, and clients of all kinds: correct ones, and others that reset, close during their own calls, are cancelled,
// or have a deadline. Listeners are closed and new ones made at the same time. All data belongs to its own connection
// and is in order. After a round, nothing of it is left in the runtime.

#include "stress/stress.hpp"

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

// Byte number `position` of what the connection of that name says.
char spoken(std::uint64_t name, std::uint64_t position) {
  return static_cast<char>((name >> (position % sizeof name * 8)) ^ (position / sizeof name));
}

// An address of this machine's own that others are not likely to use: they keep to 127.0.0.1. A client may connect
// after its listener was closed, when another program may have the port.
net::endpoint any_loopback(detail::random& random) {
  std::string address = "127";
  for (int i = 0; i < 3; ++i) address += "." + std::to_string(1 + random.below(254));
  return net::endpoint::ip(address, 0);
}

// A listener, who is served by it, and its clients.
class town {
 public:
  town(program& test, detail::random random) : test_(test), random_(random) {}

  void live() {
    net::serve_options options;
    options.max_connections = random_.below(3) == 0 ? 1 + random_.below(5) : 0;
    options.drain_time = std::chrono::milliseconds(random_.below(3) * 20);
    options.on_error = [this](const net::endpoint&, const std::exception_ptr& failure) {
      test_.check(!failure, "a server met an error that is none of a client's");
    };
    const bool local = random_.below(3) == 0;
    net::tcp_listener listener(local ? net::endpoint::local("@ulexite_net_stress." + std::to_string(::getpid()) + "." +
                                                            std::to_string(random_.next()))
                                     : any_loopback(random_));
    // Destroyed from the end, should this fiber be cancelled.
    task_group connections(on_error::keep_going), server(on_error::keep_going), clients(on_error::keep_going);
    auto serving = server.spawn(
        [&] { listener.serve(connections, [this](auto& stream) { meet([&] { answer(stream); }); }, options); });
    start_clients(clients, listener.local_endpoint());
    switch (random_.below(4)) {
      case 0: pause(random_); break;
      case 1: clients.request_stop(); break;
      case 2: connections.request_stop(); break;
      default: wait(clients);
    }
    if (random_.below(4) == 0) serving.request_stop();
    pause(random_);
    listener.close();
    wait(clients);
    wait(server);
    wait(connections);
  }

 private:
  static void pause(detail::random& random) {
    if (random.below(3) == 0) return this_fiber::sleep_for(std::chrono::microseconds(random.below(2000)));
    for (std::uint32_t n = random.below(40); n > 0; --n) this_fiber::yield();
  }

  // Children end, or fail, by a cancellation only: see meet.
  static void wait(task_group& group) {
    for (;;) try {
        return group.wait();
      } catch (const operation_cancelled&) {
        this_fiber::check();
      }
  }

  // Calls `body`, which may meet whatever connections do. It is judged in the fiber that met it: ThreadSanitizer cannot
  // see how libstdc++ counts the owners of an exception.
  template <class Body>
  void meet(Body body) {
    try {
      body();
    } catch (const operation_cancelled&) {
      throw;
    } catch (const std::system_error& error) {
      const auto& code = error.code();
      const bool expected = code == std::errc::timed_out || code == std::errc::connection_reset ||
                            code == std::errc::broken_pipe || code == std::errc::bad_file_descriptor ||
                            code == std::errc::connection_refused || code == std::errc::not_connected;
      if (!expected) std::fprintf(stderr, "%s\n", error.what());
      test_.check(expected, "an operation failed otherwise than it may", code.value());
    }
  }

  void start_clients(task_group& clients, const net::endpoint& at) {
    for (std::uint32_t n = 1 + random_.below(12); n > 0; --n) {
      auto handle = clients.spawn([this, &at, name = random_.next(), mine = detail::random(random_.next())]() mutable {
        // Linux may leave a connection half-open that is made while the listener is closed.
        const deadline_scope limit(std::chrono::milliseconds(mine.below(8) == 0 ? mine.below(5) : 2000));
        meet([&] { visit(at, name, mine); });
      });
      if (random_.below(6) == 0) {
        pause(random_);
        handle.request_stop();
      }
    }
  }

  // The server's part: after the name comes what the client says, which is said back.
  void answer(net::tcp_stream& stream) {
    std::uint64_t name = 0;
    if (stream.read(&name, sizeof name) != sizeof name) return;
    std::uint64_t heard = 0;
    char buffer[700];
    while (const std::size_t got = stream.read_some(buffer, sizeof buffer)) {
      hear(name, heard, buffer, got);
      stream.write(buffer, got);
      test_.moved();
    }
  }

  void hear(std::uint64_t name, std::uint64_t& position, const char* text, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, ++position)
      test_.check(text[i] == spoken(name, position), "a byte went astray", static_cast<long long>(position));
  }

  void visit(const net::endpoint& at, std::uint64_t name, detail::random& random) {
    auto stream = net::tcp_stream::connect(at);
    if (stream.local_endpoint() == stream.remote_endpoint()) return;  // a port without a listener may meet itself
    if (random.below(4) == 0) stream.expires_after(std::chrono::milliseconds(random.below(20)));
    std::uint64_t said = 0, heard = 0;
    {
      task_group users;
      users.spawn(
          [&, mine = detail::random(random.next())]() mutable { meet([&] { speak(stream, name, said, mine); }); });
      users.spawn([&] { meet([&] { listen(stream, name, heard); }); });
      const std::uint32_t manner = random.below(6);
      if (manner == 0) pause(random);
      if (manner <= 1) end(stream, random);  // in the midst of it
      if (manner == 2) users.request_stop();
      users.wait();
    }
    test_.check(heard <= said, "more came back than was said", static_cast<long long>(heard - said));
    end(stream, random);
  }

  // Says its name and then so much.
  static void speak(net::tcp_stream& stream, std::uint64_t name, std::uint64_t& said, detail::random& random) {
    stream.write(&name, sizeof name);
    std::string text;
    for (std::uint32_t n = random.below(8); n > 0; --n) {
      text.clear();
      for (std::uint32_t size = random.below(5) == 0 ? random.below(30'000) : 1 + random.below(200); size > 0; --size)
        text += spoken(name, said++);
      stream.write(text);
    }
    stream.shutdown_write();
  }

  void listen(net::tcp_stream& stream, std::uint64_t name, std::uint64_t& heard) {
    char buffer[500];
    while (const std::size_t got = stream.read_some(buffer, sizeof buffer)) hear(name, heard, buffer, got);
  }

  static void end(net::tcp_stream& stream, detail::random& random) {
    if (random.below(2) == 0) {
      const linger at_once{1, 0};
      ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    stream.close();
  }

  program& test_;
  detail::random random_;
};

long long open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

// Towns side by side, so that a number that one of them gives up is taken by another.
void live_in_towns(program& test, detail::random& random) {
  const detail::runtime_state& here = detail::this_runtime_state();
  const long long descriptors = open_descriptors();
  const auto registrations = static_cast<long long>(here.loop->registrations());
  {
    task_group towns;
    for (int i = 0; i < 4; ++i) towns.spawn([&test, mine = detail::random(random.next())] { town(test, mine).live(); });
    towns.wait();
  }
  while (here.live() != 1) this_fiber::yield();
  test.check(open_descriptors() == descriptors, "descriptors are left open", open_descriptors() - descriptors);
  const auto left = static_cast<long long>(here.loop->registrations());
  test.check(left == registrations, "registrations are left in the event loop", left - registrations);
}

// Ends a runtime in the midst of everything.
void end_busy(program& test, detail::random& random) {
  const long long descriptors = open_descriptors();
  {
    runtime rt({.threads = test.threads});
    for (int i = 0; i < 2; ++i)
      rt.spawn([&test, mine = detail::random(random.next())]() mutable {
          for (;;) town(test, detail::random(mine.next())).live();
        }).detach();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(5000)));
    const std::size_t left = rt.shutdown(shutdown_mode::cancel);
    test.check(left == 0, "fibers were abandoned by a cancel", static_cast<long long>(left));
    test.check_metrics(rt, true);
  }
  test.check(open_descriptors() == descriptors, "descriptors are left open", open_descriptors() - descriptors);
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  open_descriptors();
  return test.run_with_one_runtime([&](runtime& rt, detail::random& random) {
    for (int i = 0; i < 10; ++i) {
      rt.run([&] { live_in_towns(test, random); });
      test.moved();
    }
    end_busy(test, random);
  });
}
