#include "client.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <system_error>
#include <utility>

namespace presence {
namespace {

// The argument keeps the client alive.
ulexite::task<> deliver(std::shared_ptr<client> to) {
  try {
    co_await to->send_outbox();
  } catch (const std::system_error&) {  // it has left, or does not read: its other coroutine sees that too
    to->stream().abort();
  }
}

}  // namespace

client::client(ulexite::net::tcp_stream stream, ulexite::task_group& senders, const limits& bounds)
    : stream_(std::move(stream)), senders_(senders), bounds_(bounds) {}

void client::push(std::string_view line) {
  enum { first, behind_others, too_much };
  const auto how = outbox_.with_lock([&](std::string& text) {
    if (text.size() + line.size() > bounds_.outbox) return too_much;
    text += line;
    return text.size() == line.size() ? first : behind_others;
  });
  if (how == first) {
    senders_.spawn(deliver, shared_from_this());
  } else if (how == too_much && stream_.is_open()) {
    dropped.fetch_add(1, std::memory_order_relaxed);  // a counter
    stream_.abort();
  }
}

void client::reply(std::string_view line) {
  outbox_.with_lock([&](std::string& text) { text += line; });
}

ulexite::task<> client::send_outbox() {
  const auto turn = co_await ulexite::co_lock(sending_);
  const std::string text = outbox_.exchange({});
  if (text.empty()) co_return;
  const ulexite::shield whole_lines;  // a write that is stopped may leave the first part of a line behind
  stream_.writes_expire_after(bounds_.patience);
  co_await ulexite::co_write(stream_, text);
}

}  // namespace presence
