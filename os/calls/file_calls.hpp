#pragma once

// Common parts of the calls on files.

#include <ulexite/base/nul.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/pool_call.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/os/calls/nowait_support.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker_parts/brief_call.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace ulexite::detail {

// The flags of open for a mode. Throws usage_error for a contradictory one.
int flags_of(os::open_mode mode);

// The type of an open file, and the numbers of its device; also if it was opened with O_PATH. Zeros if there are none.
// Never waits.
inline struct statx status_of(int fd) noexcept {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) return {};
  return status;
}

// Makes the system call, and repeats it while it is interrupted.
template <class Call>
auto retry_on_eintr(Call&& call) noexcept -> decltype(call()) {
  for (;;)
    if (const auto result = result_or_errno(call()); result != -EINTR) return result;
}

// Opens `path`. Returns the descriptor or -errno.
inline int open_now(const std::string& path, int flags, mode_t permissions) noexcept {
  if (has_nul(path)) return -EINVAL;  // open would take the text before it
  return retry_on_eintr([&] { return ::open(path.c_str(), flags, permissions); });
}

// Calls part(done) until `size` bytes are done, or the file ends. Returns 0 or -errno.
template <class Part>
int in_parts(std::size_t size, std::size_t& done, Part&& part) noexcept {
  while (done < size) {
    const ssize_t more = retry_on_eintr([&] { return part(done); });
    if (more < 0) return static_cast<int>(more);
    if (more == 0) break;
    done += static_cast<std::size_t>(more);
  }
  return 0;
}

// Larger calls are made on the pool, because even copying the data would keep the worker too long.
inline constexpr std::size_t largest_part = 256 * 1024;

// Makes call(flags) on this worker, if `calls` says that this needs no wait; the flags are those of preadv2. Returns
// its result or -errno. -EAGAIN: it must be made on the pool, which calls `find_out` first. It may have done a part.
template <class Call>
ssize_t make_here(nowait_support& calls, int fd, Call&& call) noexcept {
  if (calls.known() <= nowait_support::opened) calls.ask(fd);
  ssize_t result = -EAGAIN;
  switch (calls.known()) {
    case nowait_support::nowait:
      result = call(RWF_NOWAIT);
      if (!refuses_nowait(result)) return result;
      calls.learn(nowait_support::unknown);
      return -EAGAIN;
    case nowait_support::rarely_blocks: brief_call([&] { result = call(0); }); return result;
    case nowait_support::never_blocks: return call(0);
    default: return result;
  }
}

// Makes call(flags) for up to `size` bytes: on this worker as far as that needs no wait, and otherwise on the pool.
// Returns the call's result. Sets `error` if it fails or is not made; then the result is negative.
template <class Call>
ssize_t make_here_or_on_pool(nowait_support& calls, int fd, std::size_t size, std::error_code& error, Call&& call) {
  error = stop_cause(this_agent());
  if (error) return -1;
  const ssize_t here = size <= largest_part ? make_here(calls, fd, call) : -EAGAIN;
  if (here == -EAGAIN)
    return on_pool(error, [&] {
      calls.find_out(fd);
      return ssize_t{call(0)};
    });
  if (here < 0) error.assign(static_cast<int>(-here), std::system_category());
  spend_budget();
  return here;
}

// Throws `error`, if it is one, with the message "ulexite: " + what + the name of `which`.
inline void throw_if(const std::error_code& error, const char* what, const std::string& which) {
  if (error) fail(error, std::string("ulexite: ") + what + " " + shown(which));
}

}  // namespace ulexite::detail
