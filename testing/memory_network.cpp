// The simulated network: its table of sockets, what is on its way between them, and their readiness.

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/testing/memory_network.hpp>
#include <ulexite/testing/saturated_sum.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ulexite::testing {

void memory_network::clear() noexcept {
  sockets_.clear();
  under_way_.clear();
  held_.clear();
  cut_.clear();
  next_fd_ = first_fd;
  next_port_ = first_port;
}

std::size_t memory_network::open_sockets() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(sockets_, [](const auto& each) { return each.second.accepted; }));
}

memory_network::socket_state* memory_network::find(int fd) noexcept {
  const auto at = sockets_.find(fd);
  return at == sockets_.end() ? nullptr : &at->second;
}

bool memory_network::is_cut(const net::endpoint& server) const noexcept {
  return std::ranges::any_of(cut_, [&](const net::endpoint& each) { return takes(server, each); });
}

// Whether a partition holds the message. If its target was closed, its sender shows which listener it is about.
bool memory_network::is_cut(int to, const message& what) noexcept {
  const socket_state* end = find(to);
  if (!end) end = find(what.from);
  return end && is_cut(end->at == phase::listening ? end->local : end->server);
}

int memory_network::add(socket_state made) {
  sockets_.emplace(next_fd_, std::move(made));
  return next_fd_++;
}

std::size_t memory_network::room(const socket_state& to) const noexcept {
  const std::size_t taken = to.inbox.size() + to.incoming;
  return taken < options_.buffer ? options_.buffer - taken : 0;
}

// ---- what is on its way ----

void memory_network::post(int to, message what) {
  socket_state* const target = find(to);
  if (target && what.what == message::bytes) target->incoming += what.data.size();
  if (is_cut(to, what)) {
    held_.emplace_back(to, std::move(what));
    return;
  }
  if (!target) return bounce(what);
  const std::chrono::nanoseconds jitter = options_.jitter / 4 * (options_.jitter.count() > 0 ? by_.choose(5) : 0);
  const std::int64_t sent = saturated_sum(saturated_sum(by_.now, options_.latency), jitter);
  const std::int64_t at = std::max(sent, target->last_arrival);
  target->last_arrival = at;
  if (at <= by_.now) return deliver(to, what);
  under_way_.emplace(at, std::pair(to, std::move(what)));
}

void memory_network::deliver(int to, message& what) noexcept {
  socket_state* const at = find(to);
  if (!at) return bounce(what);
  switch (what.what) {
    case message::bytes:
      at->incoming -= what.data.size();
      if (at->dead) return;
      at->inbox += what.data;
      return tell(*at, true, false, false);
    case message::end: at->ended = true; return tell(*at, true, false, true);
    case message::reset: return break_off(*at);
    case message::connection:
      if (at->ended) return refuse(what.from);
      at->backlog.push_back(what.from);
      return tell(*at, true, false, false);
    case message::established:
      if (at->at == phase::connecting) at->at = phase::connected;  // otherwise it was refused
      return tell(*at, false, true, false);
    case message::refusal: at->at = phase::refused; return tell(*at, true, true, false);
  }
}

// A reset arrives. As on Linux, bytes that have arrived can still be read, and after the peer's end no read fails.
void memory_network::break_off(socket_state& of) noexcept {
  if (of.dead) return;
  if (of.at == phase::connecting) {
    of.at = phase::refused;
  } else {
    of.dead = true;
    of.was_reset = !of.ended;
    of.ended = of.end_sent = true;
  }
  tell(of, true, true, true);
}

// Answers what comes to a closed socket. As with TCP, bytes are answered by a reset, and a connection is refused.
void memory_network::bounce(const message& what) noexcept {
  if (what.what == message::connection) refuse(what.from);
  if (what.what == message::bytes) post(what.from, {message::reset});
}

void memory_network::tell(socket_state& of, bool readable, bool writable, bool hung_up) noexcept {
  detail::event_list ready;
  for (detail::fd_source* const each : of.sources) detail::event_loop::fire(*each, readable, writable, hung_up, ready);
  while (detail::event* const edge = ready.pop()) detail::resume(*static_cast<detail::agent*>(edge->waiter));
}

std::int64_t memory_network::next_arrival() noexcept {
  return under_way_.empty() ? INT64_MAX : under_way_.begin()->first;
}

void memory_network::arrive(std::int64_t now) noexcept {
  while (!under_way_.empty() && under_way_.begin()->first <= now) {
    auto node = under_way_.extract(under_way_.begin());
    deliver(node.mapped().first, node.mapped().second);
  }
}

// Messages that are under way do not arrive either. Their order stays.
void memory_network::partition(const net::endpoint& server) {
  cut_.push_back(server);
  for (auto each = under_way_.begin(); each != under_way_.end();) {
    auto& [to, what] = each->second;
    if (is_cut(to, what)) {
      held_.emplace_back(to, std::move(what));
      each = under_way_.erase(each);
    } else {
      ++each;
    }
  }
}

void memory_network::heal(const net::endpoint& server) {
  std::erase_if(cut_, [&](const net::endpoint& each) { return takes(server, each) || takes(each, server); });
  for (auto& [to, what] : std::exchange(held_, {})) {
    if (socket_state* const target = find(to); target && what.what == message::bytes)
      target->incoming -= what.data.size();  // post counts it again
    post(to, std::move(what));
  }
}

// Resets both ends.
void memory_network::reset(int fd) noexcept {
  socket_state* const at = find(fd);
  if (!at || at->at != phase::connected) return;
  message now{message::reset};
  const int other = at->other;
  deliver(fd, now);
  deliver(other, now);
}

// Ends a connection that finds no listener.
void memory_network::refuse(int fd) noexcept {
  reset(fd);
  sockets_.erase(fd);
}

// Ends the connections that were not accepted. Their clients learn it later, as all that comes from a server.
void memory_network::end_backlog(socket_state& of) noexcept {
  for (const int waiting : std::exchange(of.backlog, {})) {
    auto node = sockets_.extract(waiting);
    if (!node.empty()) post(node.mapped().other, {message::reset});
  }
}

std::size_t memory_network::reset_connections(const net::endpoint& server) {
  std::vector<int> ends;
  for (const auto& [fd, each] : sockets_)
    if (each.at == phase::connected && takes(each.server, server) && !each.dead) ends.push_back(fd);
  // If the other end was closed, this one counts.
  const auto number = std::ranges::count_if(ends, [&](int fd) {
    const int other = sockets_.at(fd).other;
    return fd < other || std::ranges::find(ends, other) == ends.end();
  });
  for (const int fd : ends) reset(fd);
  return static_cast<std::size_t>(number);
}

// ---- readiness ----

short memory_network::readiness_of(socket_state& of) noexcept {
  short ready = 0;
  if (!of.backlog.empty() || !of.inbox.empty()) ready |= POLLIN;
  if (of.ended || of.reading_shut) ready |= POLLIN | POLLRDHUP;
  if (of.was_reset || of.at == phase::refused) ready |= POLLERR | POLLIN | POLLOUT;
  const socket_state* const to = find(of.other);
  if (of.at == phase::connected && (of.end_sent || !to || room(*to) > 0)) ready |= POLLOUT;
  return ready;
}

int memory_network::poll(pollfd* queries, nfds_t count) noexcept {
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    queries[i].revents = 0;
    if (queries[i].fd < first_fd) continue;  // of the kernel: its registration is refused
    socket_state* const at = find(queries[i].fd);
    queries[i].revents =
        at ? static_cast<short>(readiness_of(*at) & (queries[i].events | POLLERR | POLLHUP)) : POLLNVAL;
    ready += queries[i].revents != 0;
  }
  return ready;
}

void memory_network::watch(int fd, detail::fd_source& source) {
  socket_state* const at = find(fd);
  if (!at) return;
  at->sources.push_back(&source);
  watched_[&source] = fd;
  detail::event_list nobody;  // waits yet
  const short ready = readiness_of(*at);
  detail::event_loop::fire(source, ready & POLLIN, ready & POLLOUT, ready & POLLRDHUP, nobody);
}

void memory_network::unwatch(detail::fd_source& source) noexcept {
  const auto fd = watched_.extract(&source);
  if (socket_state* const at = fd ? find(fd.mapped()) : nullptr) std::erase(at->sources, &source);
}

}  // namespace ulexite::testing
