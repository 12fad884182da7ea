#pragma once

// The wait of io_wait.hpp, of which a coroutine gives the stack up.

#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

namespace ulexite::detail {

class watched_fds;

// A wait for any of the descriptors, until `deadline`, with a stack or without it.
class fds_wait : public stackless_wait {
 public:
  fds_wait(std::span<net::fd_interest> fds, std::int64_t deadline) noexcept;
  ~fds_wait() override;
  [[nodiscard]] bool ready(agent& self);
  void block();
  // The number of ready ones; 0 if the deadline passed first.
  std::size_t result() const;

 private:
  std::error_code attempt_or_wait(agent& self);
  [[nodiscard]] bool resumed(agent& self) noexcept override;

  const std::span<net::fd_interest> fds_;
  const std::int64_t deadline_;
  std::error_code error_;
  bool waits_ = false;
  std::unique_ptr<watched_fds> watched_;
};

}  // namespace ulexite::detail
