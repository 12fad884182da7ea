#pragma once

// What a server needs below a manager such as systemd or Kubernetes: messages to the manager, its sockets, a reload at
// SIGHUP, probes, and an end that loses no request. docs/deploying.md shows it in use.

#include "stop_signals.hpp"

#include <ulexite/net/inherited.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>
#include <ulexite/os/signal_set.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/watch.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace examples {

// The messages of sd_notify(3), without libsystemd: a datagram each to the Unix socket that NOTIFY_SOCKET names.
class service_manager {
 public:
  // Reads the variables of the manager, and removes them, because programs that this one starts must not use them. So
  // make it before other threads read the environment. Throws std::invalid_argument for a wrong variable, and
  // std::system_error if nobody receives at the socket.
  service_manager() {
    const auto to = take("NOTIFY_SOCKET");
    const auto period = take("WATCHDOG_USEC"), watched = take("WATCHDOG_PID");
    if (!to) return;
    if (!to->starts_with('/') && !to->starts_with('@'))
      throw std::invalid_argument("NOTIFY_SOCKET is \"" + *to + "\", neither a path nor a name after @");
    socket_.connect(ulexite::net::endpoint::local(*to));
    if (period && (!watched || number_in("WATCHDOG_PID", *watched) == ::getpid()))
      watchdog_ = std::chrono::microseconds(number_in("WATCHDOG_USEC", *period));
  }

  // Sends lines of NAME=VALUE. Does nothing without a manager, and gives up one that does not read for a second. Errors
  // are not reported, because the service goes on without its manager. Any number of fibers. A stopped fiber sends
  // nothing if it would have to wait.
  void tell(const std::string& lines) {
    if (!socket_.is_open()) return;
    socket_.writes_expire_after(std::chrono::seconds(1));
    std::error_code ignored;
    socket_.send(lines, ignored);
  }
  // Sends RELOADING=1; READY=1 ends the reload. A unit with Type=notify-reload needs the time.
  void tell_reloading() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC
    tell("RELOADING=1\nMONOTONIC_USEC=" +
         std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
  }

  // Sends WATCHDOG=1 twice in the time that the manager allows (WATCHDOG_USEC), until the fiber is asked to stop.
  // Returns at once if there is no watchdog. For a fiber and not for a thread: so the manager restarts a program whose
  // workers are all stuck.
  void feed_watchdog() {
    for (; watchdog_.count() > 0; ulexite::this_fiber::sleep_for(watchdog_ / 2)) tell("WATCHDOG=1");
  }

 private:
  static std::optional<std::string> take(const char* variable) {
    const char* const value = std::getenv(variable);
    if (!value) return std::nullopt;
    std::string copy(value);
    ::unsetenv(variable);
    return copy;
  }
  static std::int64_t number_in(const char* variable, const std::string& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number <= 0)
      throw std::invalid_argument(std::string(variable) + " is \"" + text + "\", not a number above 0");
    return number;
  }

  ulexite::net::udp_socket socket_;  // without a manager: none
  std::chrono::microseconds watchdog_{0};
};

// A value that can be loaded again while it is in use, such as certificates: those that have it keep the old one.
template <class T>
class reloadable {
 public:
  // Loads the value. Throws exceptions of load().
  explicit reloadable(std::function<T()> load) : load_(std::move(load)), now_(made()) {}

  // The value that was loaded last. Any fiber or thread. Never waits.
  [[nodiscard]] std::shared_ptr<const T> get() const { return now_.get(); }
  // Loads it once more. An exception of load() leaves the old value, and is thrown. Any fiber or thread; it blocks the
  // thread if load() does, for example to read files.
  void reload() { now_.set(made()); }

 private:
  std::shared_ptr<const T> made() const { return std::make_shared<const T>(load_()); }

  const std::function<T()> load_;
  ulexite::watch<std::shared_ptr<const T>> now_;
};

// The socket that systemd has passed, if it has (socket activation), else a new one on `at`. Such a socket listens
// while the program is replaced, and its clients wait. Throws std::system_error, and std::invalid_argument if there are
// several. Call it once.
inline ulexite::net::tcp_listener listener_of_manager_or(const ulexite::net::endpoint& at) {
  const std::vector<int> given = ulexite::net::inherited_descriptors();
  if (given.empty()) return ulexite::net::tcp_listener(at);
  if (given.size() > 1)
    throw std::invalid_argument("LISTEN_FDS is " + std::to_string(given.size()) +
                                ", but this program takes one socket");
  return ulexite::net::tcp_listener::adopt(given.front());
}

struct service_options {
  // How long a stop waits before the listener closes. Meanwhile /readyz answers 503, so that balancers send no further
  // clients, and all requests are served.
  std::chrono::nanoseconds drain_delay{0};
  // What SIGHUP does, on a thread that may block. An exception means that the old state was kept.
  std::function<void()> reload{};
  // Called in a fiber: with "reloaded"; with "kept" and the reason; with "stopping" and the signal. It must not throw.
  std::function<void(const std::string& event, const std::string& why)> log{};
};

// The answer to a probe.
struct probe_answer {
  unsigned status;
  std::string_view text;
};

// A server's life: it tells the manager that it is ready, feeds the watchdog, reloads at SIGHUP, drains at SIGINT or
// SIGTERM. From its making on SIGHUP does not end the program.
class managed_service {
 public:
  // As service_manager. `signals` must live as long.
  managed_service(stop_signals& signals, service_options options)
      : options_(std::move(options)), stop_signals_(signals), hangups_(SIGHUP) {}

  // Calls serve(), which accepts connections until the listener is closed: at the first signal, after the drain delay.
  // A second signal ends the process at once. Throws exceptions of serve(). A cancellation point.
  void run(ulexite::net::tcp_listener& listener, const std::function<void()>& serve) {
    run([&] { listener.close(); },
        [&] {
          tell_ready();  // it listens already
          serve();
        });
  }
  // The same for a program that is not ready yet: calls work(), which calls tell_ready(), and returns soon after end()
  // was called, in another fiber.
  void run(const std::function<void()>& end, const std::function<void()>& work) {
    ulexite::task_group helpers;
    helpers.spawn({.name = "watchdog"}, [this] { manager_.feed_watchdog(); });
    helpers.spawn({.name = "reloads"}, [this] { reload_at_hangups(); });
    helpers.spawn({.name = "stop"}, [&] { drain_at_signal(end); });
    work();
    helpers.request_stop();
    helpers.wait();
  }
  // From now on the program wants clients, and SIGHUP reloads. Once; never waits for long.
  void tell_ready() {
    ready_.set();
    manager_.tell("READY=1\nSTATUS=serving");
  }

  // Whether a stop has begun. A server then makes each answer the last of its connection, so that clients leave before
  // the listener closes. Any thread.
  [[nodiscard]] bool is_draining() const noexcept { return draining_.load(std::memory_order_relaxed); }  // a hint

  // The answer if it is the GET or HEAD of a probe: /livez says that the process serves, /readyz that it wants clients.
  // Any thread. Never waits.
  [[nodiscard]] std::optional<probe_answer> probe(std::string_view method, std::string_view target) const noexcept {
    const std::string_view path = target.substr(0, target.find('?'));
    if (method != "GET" && method != "HEAD") return std::nullopt;
    if (path == "/livez") return probe_answer{200, "ok\n"};
    if (path != "/readyz") return std::nullopt;
    if (is_draining()) return probe_answer{503, "draining\n"};
    return ready_.is_set() ? probe_answer{200, "ok\n"} : probe_answer{503, "starting\n"};
  }

 private:
  void reload_at_hangups() {
    for (ready_.wait();;) {
      hangups_.receive();
      if (is_draining() || !options_.reload) continue;
      manager_.tell_reloading();
      std::string event = "reloaded", why;
      try {
        ulexite::blocking(options_.reload);
      } catch (const ulexite::operation_cancelled&) {
        throw;
      } catch (const std::exception& failure) {
        event = "kept";
        why = failure.what();
      }
      if (options_.log) options_.log(event, why);
      std::replace(why.begin(), why.end(), '\n', ' ');  // it would begin another variable
      manager_.tell("READY=1\nSTATUS=" + (why.empty() ? "serving" : "serving with the old configuration: " + why));
    }
  }

  void drain_at_signal(const std::function<void()>& end) {
    const char* const signal = name_of(stop_signals_.wait());
    draining_.store(true, std::memory_order_relaxed);  // a hint
    manager_.tell(std::string("STOPPING=1\nSTATUS=draining after ") + signal);
    if (options_.log) options_.log("stopping", signal);
    ulexite::this_fiber::sleep_for(options_.drain_delay);
    end();
  }

  const service_options options_;
  stop_signals& stop_signals_;
  ulexite::os::signal_set hangups_;
  service_manager manager_;
  ulexite::event ready_;
  std::atomic<bool> draining_{false};
};

}  // namespace examples
