#pragma once

// An operation on a socket in a coroutine: attempts that never wait, and between them waits for an edge without a
// stack.

#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <system_error>

namespace ulexite::detail {

class socket;

class socket_wait : public stackless_wait {
 public:
  [[nodiscard]] bool ready(agent& self);
  void block();

 protected:
  // `on`: null if there is no socket; every operation then fails. `edge_is_enough`: an edge ends the operation, without
  // another attempt.
  socket_wait(socket* on, bool reads, bool edge_is_enough = false) noexcept;
  ~socket_wait() override = default;

  // Makes the operation on the socket, until `deadline`. Sets error_.
  virtual void attempt(std::int64_t deadline) = 0;

  // Rethrows what an attempt has thrown. Otherwise error_ tells.
  void rethrow() const {
    if (failed_) rethrow_kept();
  }

  std::error_code error_;

 private:
  // True: the operation is done, or has failed. False: it waits for an edge.
  [[nodiscard]] bool attempt_or_wait(agent& self);
  [[nodiscard]] bool wait_for_edge(agent& self);
  void leave_socket() noexcept;
  void use_edge() noexcept;
  [[nodiscard]] bool resumed(agent& self) noexcept override;
  [[nodiscard]] bool resumed_attempt(agent& self) noexcept;

  socket* const on_;
  const direction side_;
  const bool edge_is_enough_;
  bool inside_ = false;  // counted as a user of the socket
  bool done_ = false;
  bool failed_ = false;
  std::int64_t deadline_;
  alignas(void*) std::byte edge_[3 * sizeof(void*)];  // an evloop event
};

}  // namespace ulexite::detail
