#include <ulexite/base/version.hpp>
#include <ulexite/interop/c/handles.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>

namespace ulexite::detail::c {
namespace {

// The embedder's memory: set once, before anything is allocated with it.
struct memory_hooks {
  void* (*allocate)(void*, std::size_t) = nullptr;
  void (*release)(void*, void*) = nullptr;
  void* user = nullptr;
  friend bool operator==(const memory_hooks&, const memory_hooks&) noexcept = default;
};

std::mutex setting;
bool set = false;
memory_hooks memory;

// State
//   count   the blocks of malloc that the threads of this place have made, minus those that they have released. Only
//           the sum of all places means something.
struct alignas(64) block_count {
  std::atomic<std::size_t> count{0};
};
block_count blocks_of_malloc[16];  // several, so that workers do not write to the same cache line

std::atomic<std::size_t>& own_count() noexcept {
  const detail::scheduler* const here = detail::this_scheduler();
  return blocks_of_malloc[here ? here->index() % std::size(blocks_of_malloc) : 0].count;
}
std::size_t live_blocks_of_malloc() noexcept {
  std::size_t sum = 0;
  for (const block_count& each : blocks_of_malloc) sum += each.count.load(std::memory_order_relaxed);  // counter
  return sum;
}

}  // namespace

void use_memory_of(const ulx_hooks& hooks) {
  if (!hooks.allocate != !hooks.release)
    throw std::invalid_argument("ulx_hooks: allocate and release come together, or not at all");
  if (!hooks.allocate) return;
  const memory_hooks wanted{hooks.allocate, hooks.release, hooks.user};
  const std::lock_guard lock(setting);
  if (set && !(memory == wanted))
    throw std::invalid_argument("ulx_hooks: another runtime of this process has other hooks for memory");
  if (const std::size_t early = set ? 0 : live_blocks_of_malloc(); early > 0)
    throw std::invalid_argument("ulx_hooks: " + std::to_string(early) + " objects have memory of malloc already");
  memory = wanted;
  set = true;
}

bool embedder_has_memory() noexcept { return memory.allocate != nullptr; }

// A lock of the library may be held here, so a hook that waited would block its worker.
void* allocate(std::size_t bytes) {
  void* room;
  if (memory.allocate) {
    const no_suspend_scope stays("the hook allocate");
    room = memory.allocate(memory.user, bytes);
  } else {
    room = std::malloc(std::max<std::size_t>(bytes, 1));
    if (room) own_count().fetch_add(1, std::memory_order_relaxed);  // counter
  }
  if (!room) throw std::bad_alloc();
  return room;
}

void release(void* room) noexcept {
  if (memory.release) {
    const no_suspend_scope stays("the hook release");
    memory.release(memory.user, room);
  } else if (room) {
    own_count().fetch_sub(1, std::memory_order_relaxed);  // counter
    std::free(room);
  }
}

void read_sized(void* into, std::size_t size, const void* given, const char* name) {
  std::size_t given_size;
  std::memcpy(&given_size, given, sizeof given_size);
  if (given_size < sizeof given_size)
    throw std::invalid_argument(std::string(name) + "::size is " + std::to_string(given_size) +
                                ": set it with ULX_INIT");
  const auto* const bytes = static_cast<const char*>(given);
  if (given_size > size &&
      (given_size > 4096 || std::any_of(bytes + size, bytes + given_size, [](char byte) { return byte != 0; })))
    throw std::invalid_argument(std::string(name) + " of " + std::to_string(given_size) +
                                " bytes has fields that this library, which knows " + std::to_string(size) +
                                ", does not know");
  std::memcpy(into, given, std::min(size, given_size));
}

void report_call_in_handler() noexcept {
  detail::warn("a function of the C interface was called in a signal handler, which may only call ulx_stack_around");
}

// Called in a catch block.
int error_of_exception() noexcept {
  try {
    throw;
  } catch (const deadline_exceeded&) {
    return ULX_EDEADLINE;
  } catch (const operation_cancelled&) {
    return ULX_ECANCELED;
  } catch (const channel_closed&) {
    return ULX_ECLOSED;
  } catch (const usage_error& wrong) {
    detail::warn("%s", wrong.what());
    return ULX_EUSAGE;
  } catch (const std::invalid_argument& wrong) {
    detail::warn("%s", wrong.what());
    return EINVAL;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::system_error& refused) {
    if (refused.code() == make_error_code(errc::limit_reached)) return ULX_ELIMIT;
    if (refused.code() == make_error_code(errc::deadlock)) return ULX_EDEADLOCK;
    if (refused.code() == make_error_code(errc::no_runtime)) {
      detail::warn("%s", refused.what());
      return ULX_EUSAGE;
    }
    if (refused.code() == std::errc::timed_out) return ULX_ETIMEDOUT;
    return refused.code().value();
  } catch (const std::exception& other) {
    detail::warn("an exception where none is expected: %s", other.what());
    return EINVAL;
  }
}

int to_error(channel_status status) noexcept {
  switch (status) {
    case channel_status::ok: return 0;
    case channel_status::closed: return ULX_ECLOSED;
    case channel_status::timeout: return ULX_ETIMEDOUT;
    case channel_status::would_block: return ULX_EWOULDBLOCK;
  }
  return EINVAL;
}

}  // namespace ulexite::detail::c

extern "C" {

uint32_t ulx_abi_version(void) noexcept { return ULX_ABI_VERSION; }

const char* ulx_version(void) noexcept { return ULEXITE_VERSION_STRING; }

const char* ulx_strerror(int error) noexcept {
  switch (error) {
    case ULX_ECANCELED: return "the fiber was asked to stop";
    case ULX_EDEADLINE: return "the fiber's deadline is over";
    case ULX_ECLOSED: return "the channel is closed";
    case ULX_ETIMEDOUT: return "the deadline of the call is over";
    case ULX_EWOULDBLOCK: return "it would have had to wait";
    case ULX_EUSAGE: return "wrong use";
    case ULX_ELIMIT: return "there are max_fibers fibers already";
    case ULX_EDEADLOCK: return "every fiber waits, and nothing can end a wait";
    default: return ::strerrordesc_np(error) ? ::strerrordesc_np(error) : "unknown error";
  }
}

int64_t ulx_now(void) noexcept { return ulexite::detail::now_ns(); }
}
