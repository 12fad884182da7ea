#include <ulexite/fiber/unwind.hpp>
#include <ulexite/interop/c/handles.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/sync/blocking.hpp>

#include <span>
#include <string>
#include <vector>

namespace ulexite::detail::c {
namespace {

net::interest to_interest(unsigned wanted, unsigned least) {
  if (wanted < least || (wanted & ~unsigned{ULX_READ | ULX_WRITE}) != 0)
    throw std::invalid_argument("ulx_poll::wanted is " + std::to_string(wanted) + ": ULX_READ, ULX_WRITE or both");
  return static_cast<net::interest>(wanted);
}

int wait_for(std::span<ulx_poll> given, std::int64_t deadline) {
  std::vector<net::fd_interest> all;
  for (const ulx_poll& each : given) all.push_back({.fd = each.fd, .wanted = to_interest(each.wanted, 0)});
  const bool any = detail::wait_for_fds(all, to_limit(deadline));
  for (std::size_t i = 0; i < given.size(); ++i) given[i].ready = static_cast<unsigned>(all[i].ready);
  return any ? 0 : int{ULX_ETIMEDOUT};
}

int state_of(fiber_view::status status) noexcept {
  switch (status) {
    case fiber_view::status::fresh: return ULX_FRESH;
    case fiber_view::status::ready: return ULX_RUNNABLE;
    case fiber_view::status::running: return ULX_RUNNING;
    case fiber_view::status::waiting: return ULX_WAITING;
  }
  return ULX_RUNNING;
}

static_assert(sizeof(ulx_job) == sizeof(job) && offsetof(ulx_job, run) == offsetof(job, run));

}  // namespace
}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

int ulx_wait_fds(ulx_poll* descriptors, size_t count, int64_t deadline) noexcept {
  return guarded([&] { return wait_for(std::span(descriptors, count), deadline); });
}

int ulx_wait_fd(int fd, unsigned wanted, int64_t deadline, unsigned* ready) noexcept {
  return guarded([&] {
    const net::interest found = detail::wait_for_fd(fd, to_interest(wanted, 1), to_limit(deadline));
    if (ready) *ready = static_cast<unsigned>(found);
    return found == net::interest::none ? int{ULX_ETIMEDOUT} : 0;
  });
}

int ulx_blocking(intptr_t (*function)(void*), void* argument, intptr_t* result) noexcept {
  return guarded([&] {
    if (!function) throw usage_error("ulx_blocking without a function");
    const std::intptr_t got = blocking(function, argument);
    if (result) *result = got;
    return 0;
  });
}

int ulx_schedule(ulx_runtime* runtime, ulx_job* given) noexcept {
  return guarded([&] {
    auto& runnable = *reinterpret_cast<job*>(given);
    if (runtime) {
      runtime->of.schedule(runnable);
    } else {
      schedule(runnable);
    }
    return 0;
  });
}

void ulx_for_each_fiber(ulx_runtime* runtime, void (*visit)(void*, const ulx_fiber_info*), void* user) noexcept {
  for_each_fiber(runtime->of, [&](const fiber_view& seen) {
    const ulx_fiber_info told{.size = sizeof told,
                              .id = seen.id,
                              .name = seen.name,
                              .state = state_of(seen.state),
                              .waits = seen.waits,
                              .object = seen.object,
                              .holder = seen.holder,
                              .file = seen.file,
                              .line = seen.line,
                              .code = seen.code,
                              .data = seen.user_data,
                              .low = seen.low,
                              .sp = seen.sp,
                              .high = seen.high,
                              .record = seen.record,
                              .record_size = seen.record_size};
    visit(user, &told);
  });
}

bool ulx_stack_around(const void* address, const void** low, const void** high) noexcept {
  const std::optional<stack_bounds> found = stack_around(address);
  if (!found) return false;
  *low = found->low;
  *high = found->high;
  return true;
}

size_t ulx_backtrace(const ulx_fiber_info* fiber, void** addresses, size_t most) noexcept {
  return fiber->sp ? detail::unwind(const_cast<void*>(fiber->sp), std::span(addresses, most)) : 0;
}
}
