#pragma once

#include "directory.hpp"
#include "limits.hpp"

#include <ulexite/coroutine.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace presence {

// What the clients share. Its end waits for them.
struct home {
  const limits bounds;
  directory people{};
  std::atomic<std::uint64_t> served{0};
  ulexite::task_group senders{ulexite::on_error::keep_going};
  ulexite::task_group clients{ulexite::on_error::keep_going};
};

// The coroutine of one client, a child of home::clients: waits without a stack for commands, and answers them. When it
// is asked to stop, it says BYE.
ulexite::task<> attend(ulexite::net::tcp_stream stream, home& in);

// Accepts clients, at most `most` at a time, until the listener is closed. Then asks them to stop.
void serve(ulexite::net::tcp_listener& listener, home& in, std::size_t most);

}  // namespace presence
