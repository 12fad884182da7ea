#pragma once

// Passes a listener from a process to the next over a Unix socket, without a moment in which nobody listens.

#include <ulexite/net/tcp.hpp>
#include <ulexite/net/unix.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace hand_over {

using namespace std::chrono_literals;

// Returns listen(). The process before may have been killed a moment ago, and hold its addresses until it is gone.
template <class Listen>
auto when_free(Listen&& listen) {
  for (int tries = 1;; ++tries) {
    try {
      return listen();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::address_in_use || tries == 20) throw;
    }
    ulexite::this_fiber::sleep_for(50ms);
  }
}

// The listener of the process at `control`, which then waits for tell_that_this_serves(before). Nullopt if there is no
// such process, or if it dies; `before` is then closed.
inline std::optional<ulexite::net::tcp_listener> ask_for_listener(const std::string& control,
                                                                  ulexite::net::unix_stream& before) {
  std::error_code error;
  before = ulexite::net::unix_stream::connect(ulexite::net::endpoint::local(control), {}, error);
  if (error) return std::nullopt;
  before.expires_after(10s);
  char word;
  std::vector<int> descriptors;
  ulexite::net::receive_descriptors(before, &word, 1, descriptors, error);
  if (descriptors.size() == 1) return ulexite::net::tcp_listener::adopt(descriptors.front());
  before = {};
  return std::nullopt;
}

// Tells the process before that it may stop, and waits until the path of its control socket is free. It may have died.
inline void tell_that_this_serves(ulexite::net::unix_stream& before) {
  std::error_code died;
  before.write("o", died);
  char word;
  if (!died) before.read_some(&word, 1, died);
}

// Listens for the next process.
inline ulexite::net::unix_listener listen_for_next(const std::string& control) {
  return when_free([&control] {
    const auto at = ulexite::net::endpoint::local(control);
    std::error_code error;
    (void)ulexite::net::unix_stream::connect(at, {}, error);
    // Its process was killed. Otherwise it would have removed the path.
    if (error == std::errc::connection_refused && std::filesystem::is_socket(control)) std::filesystem::remove(control);
    return ulexite::net::unix_listener(at);
  });
}

// Gives the listener to the next process that asks. Returns when that serves. `given` is set as soon as it may have the
// listener: from then on a close would end the listening of both.
inline void give(ulexite::net::unix_listener& control, const ulexite::net::tcp_listener& listener, bool& given) {
  for (;;) {
    auto next = control.accept();
    next.expires_after(10s);
    const int fd = listener.native_handle();
    std::error_code error;
    given = true;
    ulexite::net::send_descriptors(next, "l", std::span(&fd, 1), error);
    char word;
    if (!error && next.read_some(&word, 1, error) == 1) {
      control.close();  // before `next`: its end shows that the path is free
      return;
    }
  }
}

}  // namespace hand_over
