// Connecting to the first of several endpoints that answers, after RFC 8305 (Happy Eyeballs, 2017): Addresses of the
// two families alternate. A new attempt starts when the last one has failed, or after a quarter of a second. The first
// that connects is the result. One fiber does this: it waits for any of the sockets.

#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::net {
namespace {

constexpr std::int64_t head_start = 250'000'000;  // ns

// Alternates the families, beginning with that of the first endpoint. Keeps the order within each family.
std::vector<endpoint> interleaved(std::span<const endpoint> given) {
  std::vector<endpoint> first, second, made;
  for (const endpoint& each : given) (each.family() == given.front().family() ? first : second).push_back(each);
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) made.push_back(first[i]);
    if (i < second.size()) made.push_back(second[i]);
  }
  return made;
}

// Connections under way. The first that succeeds is the result.
class race {
 public:
  explicit race(const std::optional<endpoint>& local) : local_(local) {
    if (local) error_ = std::make_error_code(std::errc::address_family_not_supported);
  }

  enum class outcome { under_way, failed, through };

  // Begins another connection.
  outcome start(const endpoint& to) {
    detail::socket_handle made = detail::make_to_connect(to, local_, error_);
    if (error_) return outcome::failed;
    const int fd = made.get()->fd();
    const int result = detail::kernel::connect(fd, to.data(), to.size());
    if (result == -EINPROGRESS) {
      fds_.push_back({fd, interest::write});
      runners_.push_back({std::move(made), to});
      return outcome::under_way;
    }
    if (result == 0) detail::refuse_itself(made, to, error_);
    if (result < 0) error_.assign(-result, std::system_category());
    if (error_) return outcome::failed;
    winner_ = std::move(made);
    return outcome::through;
  }

  // Waits until one has connected or failed, or the deadline has passed. True if one has connected; of several, the one
  // begun first.
  bool wait(std::int64_t deadline) {
    detail::wait_for_fds(fds_, deadline);
    for (std::size_t i = 0; i < fds_.size();) {
      if (fds_[i].ready == interest::none) {
        ++i;
        continue;
      }
      int number = 0;
      socklen_t size = sizeof number;
      detail::kernel::getsockopt(fds_[i].fd, SOL_SOCKET, SO_ERROR, &number, &size);
      const endpoint to = runners_[i].to;
      winner_ = std::move(runners_[i].socket);
      fds_.erase(fds_.begin() + static_cast<std::ptrdiff_t>(i));
      runners_.erase(runners_.begin() + static_cast<std::ptrdiff_t>(i));
      error_.assign(number, std::system_category());
      if (!error_) detail::refuse_itself(winner_, to, error_);
      if (!error_) return true;
      winner_ = {};  // gives up the local port
    }
    return false;
  }

  [[nodiscard]] bool over() const noexcept { return fds_.empty(); }
  [[nodiscard]] const std::error_code& last_error() const noexcept { return error_; }
  detail::socket_handle winner() noexcept { return std::move(winner_); }

 private:
  struct runner {
    detail::socket_handle socket;
    endpoint to;
  };
  const std::optional<endpoint>& local_;
  std::vector<fd_interest> fds_;
  std::vector<runner> runners_;  // the owners of these descriptors
  detail::socket_handle winner_;
  std::error_code error_ = std::make_error_code(std::errc::address_not_available);
};

// The time that the options allow, from now on.
relative_timeout time_of(const connect_options& options) {
  return options.timeout ? relative_timeout(*options.timeout) : relative_timeout();
}

}  // namespace

connect_options tcp_stream::within(relative_timeout time) {
  if (time.deadline() == detail::no_deadline) return {};
  return {.timeout = std::chrono::nanoseconds(time.deadline() - detail::now_ns())};
}

void tcp_stream::fail_to_connect(const std::error_code& error, const std::string& to, const connect_options& options) {
  detail::fail(error,
               "ulexite: connecting to " + to + (options.local ? " from " + options.local->str() : std::string()));
}

tcp_stream tcp_stream::to_connect(const endpoint& to, const connect_options& options, std::error_code& error) {
  return tcp_stream(detail::make_to_connect(to, options.local, error));
}

void tcp_stream::connect_until(std::int64_t deadline, const endpoint& to, std::error_code& error) {
  detail::connect(*socket_.get(), to, deadline, error);
  if (!error) detail::refuse_itself(socket_, to, error);
}

tcp_stream tcp_stream::connect(const endpoint& to, const connect_options& options, std::error_code& error) {
  tcp_stream made = to_connect(to, options, error);
  if (!error) made.connect_until(time_of(options).deadline(), to, error);
  if (error) return {};
  return made;
}

tcp_stream tcp_stream::connect(const endpoint& to, const connect_options& options) {
  std::error_code error;
  tcp_stream made = connect(to, options, error);
  if (error) fail_to_connect(error, to.str(), options);
  return made;
}

tcp_stream tcp_stream::connect(std::span<const endpoint> to, const connect_options& options,
                               std::error_code& error) try {
  error.clear();
  if (to.size() == 1) return connect(to.front(), options, error);
  const std::optional<endpoint>& local = options.local;
  const std::int64_t deadline = time_of(options).deadline();
  detail::throw_if_stopped();
  race candidates(local);
  bool in_time = true;
  if (!to.empty()) {
    for (const endpoint& each : interleaved(to)) {
      in_time = detail::now_ns() < deadline;
      if (!in_time) break;
      if (local && each.family() != local->family()) continue;  // its error would hide that of an attempt
      const race::outcome begun = candidates.start(each);
      if (begun == race::outcome::through) return tcp_stream(candidates.winner());
      if (begun == race::outcome::failed) continue;
      const bool alone = local && local->port() != 0;  // another socket could not be bound to this port
      const std::int64_t patience = alone ? deadline : std::min(deadline, detail::now_ns() + head_start);
      if (candidates.wait(patience)) return tcp_stream(candidates.winner());
    }
  }
  while (!candidates.over() && detail::now_ns() < deadline)
    if (candidates.wait(deadline)) return tcp_stream(candidates.winner());
  error = candidates.over() && in_time ? candidates.last_error() : std::make_error_code(std::errc::timed_out);
  return {};
} catch (const std::system_error& failure) {
  error = failure.code();
  return {};
}

tcp_stream tcp_stream::connect(std::span<const endpoint> to, const connect_options& options) {
  std::error_code error;
  tcp_stream made = connect(to, options, error);
  if (error)
    fail_to_connect(error, to.empty() ? "none" : "one of " + std::to_string(to.size()) + ", the first " + to[0].str(),
                    options);
  return made;
}

tcp_stream tcp_stream::connect(const address& to, const connect_options& options, std::error_code& error) {
  const relative_timeout time = time_of(options);
  const auto found = to.has_name() ? resolve(to.host(), std::to_string(to.port()), {.timeout = options.timeout}, error)
                                   : to.resolve(error);
  if (error) return {};
  connect_options rest = within(time);
  rest.local = options.local;
  return connect(found, rest, error);
}

tcp_stream tcp_stream::connect(const address& to, const connect_options& options) {
  std::error_code error;
  tcp_stream made = connect(to, options, error);
  if (error) fail_to_connect(error, detail::shown(to.str()), options);
  return made;
}

}  // namespace ulexite::net
