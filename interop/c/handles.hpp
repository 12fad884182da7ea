#pragma once

// The handles of the C interface, and the conversion of exceptions to error numbers.

#include <ulexite/interop/ulexite.h>
#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/interop/c/in_handler.hpp>
#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ulexite::detail::c {

// Allocates the embedder's memory, or malloc's. Throws std::bad_alloc.
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;
// Whether the embedder has set the hooks for memory.
bool embedder_has_memory() noexcept;

// Makes the process use the memory of these hooks. Throws std::invalid_argument.
void use_memory_of(const ulx_hooks& hooks);

// A base for objects that may hold the embedder's pointers: they are allocated in the embedder's memory.
struct in_embedders_memory {
  static void* operator new(std::size_t bytes) { return allocate(bytes); }
  static void operator delete(void* memory) noexcept { release(memory); }
  static void* operator new[](std::size_t bytes) { return allocate(bytes); }
  static void operator delete[](void* memory) noexcept { release(memory); }
};

// An element of any size, in place if it is small.
class cell {
 public:
  cell() noexcept = default;
  cell(const void* from, std::size_t size) : size_(size) {
    if (size_ > sizeof place_) large() = allocate(size_);
    if (size_ > 0) std::memcpy(data(), from, size_);
  }
  cell(cell&& other) noexcept : size_(std::exchange(other.size_, 0)) {
    std::memcpy(place_, other.place_, sizeof place_);
  }
  cell& operator=(cell&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~cell() {
    if (size_ > sizeof place_) release(large());
  }

  void copy_to(void* to) noexcept {
    if (to && size_ > 0) std::memcpy(to, data(), size_);
  }

 private:
  void*& large() noexcept { return *reinterpret_cast<void**>(place_); }
  void* data() noexcept { return size_ <= sizeof place_ ? place_ : large(); }

  std::size_t size_ = 0;
  alignas(16) char place_[16] = {};
};

// The error number of the exception that is being handled.
int error_of_exception() noexcept;

// Calls the function, which returns an error, and converts its exceptions to one.
template <class F>
int guarded(F&& function) noexcept {
  if (refused_in_handler()) return ULX_EUSAGE;
  try {
    return function();
  } catch (...) {
    return error_of_exception();
  }
}
// As above. The function returns a new object.
template <class F>
auto made(F&& function) noexcept -> decltype(function()) {
  decltype(function()) result = nullptr;
  if (const int error = guarded([&] {
        result = function();
        return 0;
      }))
    errno = error;
  return result;
}

int to_error(channel_status status) noexcept;

static_assert(ULX_FOREVER == detail::no_deadline);  // so no call makes a difference between them

// A wait may subtract the time now from its deadline, which must not overflow.
inline std::int64_t to_limit(std::int64_t deadline) noexcept { return std::max<std::int64_t>(deadline, 0); }
inline steady_clock::time_point to_time(std::int64_t deadline) noexcept {
  return steady_clock::time_point(std::chrono::nanoseconds(deadline));
}

// Reads a struct of the caller that begins with its size. It may be smaller or larger than this library's struct. Null
// means the defaults. Throws std::invalid_argument that names the error.
void read_sized(void* into, std::size_t size, const void* given, const char* name);
template <class T>
T read_struct(const T* given, const char* name) {
  T own{};
  if (given) read_sized(&own, sizeof own, given, name);
  own.size = sizeof own;
  return own;
}

// The hooks of the caller's runtime, or null.
const ulx_hooks* hooks_of_worker() noexcept;

// Calls main(data) as the fiber of ulx_runtime_run: with a handle, and with fiber_start and fiber_end around it.
std::intptr_t run_with_handle(std::intptr_t (*main)(void*), void* data);

// Calls fiber_start and fiber_end around a fiber's function.
class announced_fiber {
 public:
  announced_fiber();
  ~announced_fiber();
  announced_fiber(const announced_fiber&) = delete;
  announced_fiber& operator=(const announced_fiber&) = delete;
};

}  // namespace ulexite::detail::c

// A channel's values are in memory that a collector sees.
template <>
struct ulexite::detail::ring_memory<ulexite::detail::c::cell> {
  static void* allocate(std::size_t slots) { return c::allocate(slots * sizeof(c::cell)); }
  static void release(void* memory, std::size_t) noexcept { c::release(memory); }
};

struct ulx_runtime {
  ulx_runtime(ulexite::runtime_options options, const ulx_hooks& given) : hooks(given), of(std::move(options)) {}
  const ulx_hooks hooks;
  ulexite::runtime of;
  std::unique_ptr<ulexite::stopped_world> stopped;  // while it is stopped; for the thread that stopped it
};

struct ulx_strand {
  ulx_strand(ulexite::runtime& over, const char* name) : of(over, name ? name : "") {}
  ulexite::concurrent_context of;
};

namespace ulexite::detail::c {
// Set once, by the fiber. Dumps and the search for deadlocks treat a wait for it as a wait for the fiber's end.
class end_of_fiber {
 public:
  void set() noexcept { event_.set(); }
  [[nodiscard]] bool is_set() const noexcept { return event_.is_set(); }
  // False if the deadline passed first. If `who` is null, it is a wait for an event.
  bool wait_until(std::int64_t deadline, const detail::task* who) {
    return event_.wait_until_ns(deadline, who ? detail::wait_kind::join : detail::wait_kind::event, who);
  }
  operator event&() noexcept { return event_; }  // for select

 private:
  event event_;
};

// The task of the fiber of ulx_runtime_run, which has no join_handle that keeps it. The fiber does not end while others
// use its task.
struct main_task {
  detail::task& of;
  wait_group users{};
};
}  // namespace ulexite::detail::c

// A running fiber holds a reference itself.
struct ulx_fiber : ulexite::detail::c::in_embedders_memory {
  std::atomic<int> references{2};  // State: one for the handle, one while the fiber runs
  std::intptr_t result = 0;        // written before `ended` is set
  ulexite::detail::c::end_of_fiber ended;
  mutable ulexite::detail::spin_lock guard;       // guards the rest
  ulexite::join_handle<> handle;                  // empty for the fiber of ulx_runtime_run, which has the next two
  ulexite::detail::c::main_task* main = nullptr;  // while its function runs
  std::uint64_t id_of_main = 0;                   // set before others have this handle
  bool permit = false;
  ulexite::detail::wait_queue parked;
};

struct ulx_channel : ulexite::detail::c::in_embedders_memory {
  ulx_channel(std::size_t size, std::size_t capacity) : element_size(size), of(capacity) {}
  const std::size_t element_size;
  ulexite::channel<ulexite::detail::c::cell> of;
};

struct ulx_mutex {
  ulexite::mutex of;
};
struct ulx_condition {
  ulexite::condition_variable of;
};
struct ulx_group {
  ulexite::wait_group of;
};
