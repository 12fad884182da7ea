#pragma once

// What the models of the channel and of select share: see relacy_library.hpp. A model includes this header after
// "relacy_agents.hpp".
//
// EDIT: a bias after two locks in a row, so that a few operations come by it
//   base/biased_lock.hpp: perturbed ? 2 : 1024 => 1
// EDIT: a counter that is compiled elsewhere
//   sync/wait/ring_buffer.hpp: large_channel_bytes.fetch_add(bytes(larger.room_), std::memory_order_relaxed); => ;
//   sync/wait/ring_buffer.hpp: large_channel_bytes.fetch_sub(bytes(room_), std::memory_order_relaxed); => ;
// EDIT: what the lock of a channel guards
//   sync/channel.hpp: bool closed_ = false; => model::checked<bool> closed_ = false;
//   sync/wait/ring_buffer.hpp: std::size_t first_ = 0; => model::checked<std::size_t> first_ = 0;
//   sync/wait/ring_buffer.hpp: std::size_t size_ = 0; => model::checked<std::size_t> size_ = 0;
//   sync/wait/wait_queue.hpp: } result = outcome::pending; => };\n  model::checked<outcome> result = outcome::pending;

namespace model {

// For a mutant: takes the oldest waiter, also one whose wait is over.
inline ulexite::detail::claimed_wait claim_anyhow(ulexite::detail::wait_queue& queue) {
  ulexite::detail::wait_node* const node = queue.pop();
  if (!node) return {};
  return {node, node->who->word.claim(wake_reason::notified) == claim_result::won ? node->who : nullptr};
}

}  // namespace model

#include <ulexite/sync/channel.cpp>

namespace model {

using namespace std::chrono_literals;

// A number above 0 that is in one place: a move leaves 0 behind. Relacy sees each use.
class parcel {
 public:
  explicit parcel(int number = 0) : number_(number) {}
  parcel(parcel&& from) noexcept : number_(from.take()) {}
  parcel& operator=(parcel&& from) noexcept {
    RL_ASSERT(number() == 0);
    number_ = from.take();
    return *this;
  }

  int number() const { return number_; }

 private:
  int take() {
    const int number = number_;
    RL_ASSERT(number != 0);
    number_ = 0;
    return number;
  }

  checked<int> number_;
};

// One whose move fails now and then, `failures` times at most, and throws a number.
struct fragile {
  static inline unsigned failures = 0;
  parcel inside;

  explicit fragile(int number) : inside(number) {}
  fragile(fragile&& from) : inside((may_fail(), std::move(from.inside))) {}

  static void may_fail() {
    if (failures > 0 && rl::rand(2)) throw failures--;
  }
};
template <class Step>
void until_done(Step&& step) {
  for (;;) try {
      return step();
    } catch (unsigned) {
    }
}

enum class status { ok, closed, timeout, cancelled };

inline status status_of(ulexite::channel_status done) {
  RL_ASSERT(done != ulexite::channel_status::would_block);
  return done == ulexite::channel_status::ok       ? status::ok
         : done == ulexite::channel_status::closed ? status::closed
                                                   : status::timeout;
}

// With a time limit that the timer's thread may end, or none.
inline std::chrono::hours limit(bool timed) { return timed ? 1h : std::chrono::hours(1'000'000'000); }

template <class T>
status send(ulexite::channel<T>& to, T& value, bool timed = false) try {
  return status_of(to.send_for(value, limit(timed)));
} catch (const ulexite::operation_cancelled&) {
  return status::cancelled;
}

template <class T>
status receive(ulexite::channel<T>& from, T& value, bool timed = false) try {
  return status_of(from.receive_for(value, limit(timed)));
} catch (const ulexite::operation_cancelled&) {
  return status::cancelled;
}

// Before the threads: the lock of a channel is biased to one of the workers, by chance.
class channel_before {
 public:
  explicit channel_before(workers& on) { first_.begin(&on); }
  ~channel_before() { first_.finish(); }

  template <class T>
  void bias(const ulexite::channel<T>& at) {
    if (rl::rand(4) == 0) return;
    for (int i = 0; i < 2; ++i) RL_ASSERT(!at.is_closed());
  }

 private:
  fiber first_;
};

}  // namespace model
