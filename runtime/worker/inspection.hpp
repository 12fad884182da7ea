#pragma once

// Looks at the fibers of a runtime from outside: a dump reads them, and the monitor trims their stacks. It holds some
// fibers at a time. As long as it does, those that are suspended or fresh do not begin to run, so their records and
// stacks do not change (held_range.hpp). All others continue. A worker that wants to resume a held fiber waits, so an
// inspection must not hold fibers for long.
//
// The worker's fence is only the compiler's, because it is on the path of every switch. If the kernel refuses the heavy
// fence (membarrier), nothing can be inspected.

#include <ulexite/runtime/fiber_view.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace ulexite::detail {

struct coroutine_frame;

// The record of a fiber that may run, end, or give way to another meanwhile. Its memory always exists, and the reader
// checks the data afterwards. So sanitizers, which would report both, do not check copy_record.
struct raw_record {
  static_assert(sizeof(agent) % 8 == 0 && sizeof(fiber) % 8 == 0);
  using word = std::uint64_t __attribute__((may_alias));  // it holds parts of other types
  alignas(16) word words[(sizeof(agent) + sizeof(fiber)) / 8];

  [[nodiscard]] const agent& owner() const noexcept { return *reinterpret_cast<const agent*>(words); }
  [[nodiscard]] const fiber& content() const noexcept { return *reinterpret_cast<const fiber*>(&owner() + 1); }
};

// Word by word, because no pointer may be torn.
void copy_record(const agent& block, raw_record& into) noexcept;

// The milliseconds from `since` to `now`, both of the coarse clock. None if the wait has begun after `now` was read.
inline std::uint32_t waited_since(std::uint32_t since, std::uint32_t now) noexcept {
  constexpr std::uint32_t most_behind = 60'000;
  const std::uint32_t time = now - since;
  return time > UINT32_MAX - most_behind ? 0 : time;
}

// The known facts about one fiber.
struct fiber_record {
  enum class status : std::uint8_t { fresh, ready, waiting, running };

  const task* who = nullptr;
  std::uint64_t id = 0;
  std::string name;
  spawn_place where;
  std::uint64_t spawner = 0;  // the number of the fiber that spawned it, if a trace has that
  status state = status::running;
  wait_kind kind = wait_kind::none;
  bool timed = false;            // a timer ends the wait at the latest
  bool cancellable = false;      // a request to stop ends the wait
  const void* object = nullptr;  // of the wait
  std::size_t capacity = 0;      // if that is a channel to which it sends: that many values are in it
  std::uint64_t joined = 0;      // if that is the end of a fiber: its number and name
  std::string joined_name;
  std::uint32_t waited = 0;  // milliseconds
  bool stop_requested = false;
  unsigned held_locks = 0;
  void* frame = nullptr;                       // where its stack was left, or null
  const coroutine_frame* coroutine = nullptr;  // the coroutine that waits without a stack, or null
  std::size_t stack_depth = 0, stack_size = 0;
};

class inspection {
 public:
  // Has the lock of rt.world.inspecting, because a runtime has one inspection at a time.
  inspection(runtime_state& rt, std::unique_lock<std::mutex> alone) noexcept;
  ~inspection();
  inspection(const inspection&) = delete;
  inspection& operator=(const inspection&) = delete;

  static bool possible() noexcept;

  // Holds the fiber of this block. If it does not yet, it releases those before and holds the fibers of all blocks in
  // the `size` bytes from this one, at the cost of a heavy fence.
  void hold(const agent& block, std::size_t size) noexcept;
  void release() noexcept;  // what it holds

  // Reads the facts about the fiber in that block, which it holds. False if there is none that has begun or is about to
  // begin. A running fiber may end during the call. So only data that cannot be torn is read: its number and its place.
  bool read(agent& block, fiber_record& into) const;

 private:
  void read_wait(const fiber& waiting, fiber_record& into) const;

  std::unique_lock<std::mutex> alone_;
  runtime_state& runtime_;
  std::uint32_t now_ = 0;  // milliseconds of the steady clock
};

// The fiber that runs on that worker; number 0 if there is none. It may end during the call, so only its number, name
// and place are read.
fiber_record running_on(const scheduler& worker);

// Calls visit(data, view) for every fiber that has not ended. No lock, no allocation, no system call. Any thread.
void for_each_fiber(const runtime_state& rt, void (*visit)(void* data, const fiber_view& fiber), void* data) noexcept;

// The holder of the object for which a fiber waits, if it is known: of a mutex, or the fiber that is joined.
const agent* holder_of(const fiber_record& waiting) noexcept;

}  // namespace ulexite::detail
