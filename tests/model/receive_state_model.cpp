// receive_state under Relacy: the text that ships, with a kernel of two bits. It predicts the next read of a socket
// from the last one. The reader finds all data and the reset, which may arrive in one edge with the last data. It never
// waits for an edge that does not arrive. That would be a deadlock, and Relacy reports it.
//
// MUTANT: a_not_released   a send that did not see the read counts as a later send
// MUTANT: a_not_acquired   the same from the other end
// MUTANT: not_counted      a send that began before the last read counts as a later send
//   net/socket/receive_state.hpp: & ~known) + one_read; => & ~known);
//   net/socket/receive_state.hpp: if ((before & known) != drained) return; => if ((before & known) != drained) return; model::pause_by_chance(); model::pause_by_chance();
// MUTANT: any_read         a read that may have left data counts as a read that left none
//   net/socket/receive_state.hpp: (nothing_left ? drained : unknown) => drained
// MUTANT: read_suffices    a read that left no data is taken as proof that there was no error
//   net/socket/receive_state.hpp: (nothing_left ? drained : unknown) => (nothing_left ? quiet : unknown)
// MUTANT: asked_late       the writer reads the state after its send

#include "relacy_library.hpp"

enum class mutation { none, a_not_released, a_not_acquired, not_counted, any_read, read_suffices, asked_late };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                       model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;

#include "relacy_agents.hpp"

#include <ulexite/net/socket/receive_state.hpp>

// The kernel's socket. Its calls order nothing, so the state's word must.
class connection {
 public:
  // The peer: so much data, and perhaps a reset, in one edge.
  void deliver(int data, bool reset) {
    queue_.fetch_add(data + (reset ? error : 0), rl::mo_relaxed);
    const std::unique_lock lock(mutex_);
    edge_ = true;
    changed_.notify_all();
  }
  // A read of one: 1, 0 for "would block", -1 for the reset, which comes after the data.
  int read(bool& nothing_left) {
    int there = queue_.load(rl::mo_relaxed);
    while (there % error > 0)
      if (queue_.compare_exchange_weak(there, there - 1, rl::mo_relaxed, rl::mo_relaxed)) {
        nothing_left = there % error == 1;
        if (nothing_left) note_empty();
        return 1;
      }
    return there >= error ? -1 : 0;
  }
  // Whether a send succeeds.
  bool send() { return queue_.load(rl::mo_relaxed) < error; }
  // The peer: until all data were read.
  void wait_until_empty() {
    std::unique_lock lock(mutex_);
    while (queue_.load(rl::mo_relaxed) != 0) changed_.wait(lock);
  }
  // The reader: waits for an edge that was not waited for before.
  void wait() {
    std::unique_lock lock(mutex_);
    while (!edge_) changed_.wait(lock);
    edge_ = false;
  }

 private:
  void note_empty() {
    const std::unique_lock lock(mutex_);
    changed_.notify_all();
  }

  static constexpr int error = 100;  // above that: data to read

  model::relacy_atomic<int, model::orders, false> queue_{0};
  model::relacy_mutex mutex_;
  model::relacy_condition_variable changed_;
  bool edge_ = false;
};

// The peer sends. It resets together with the last data, later, or after they were read. Reader and writer act as
// socket::receive and socket::send.
struct finds_all : rl::test_suite<finds_all, 3> {
  connection socket;
  ulexite::detail::receive_state received;

  void thread(unsigned id) {
    if (id == 0) {
      const unsigned last = 1 + rl::rand(2), how = rl::rand(3);
      if (rl::rand(2)) socket.deliver(1, false);
      socket.deliver(last, how == 0);
      if (how == 2) socket.wait_until_empty();
      if (how != 0) socket.deliver(0, true);
    } else if (id == 1) {
      while (receive())  // and works on it for a while
        for (unsigned turns = rl::rand(8); turns > 0; --turns) rl::yield(1, $);
    } else {
      for (int i = 0; i < 3; ++i) send();
    }
  }
  // False at the reset.
  bool receive() {
    for (bool first = true;; first = false) {
      bool nothing_left = false;
      const int got = first && received.nothing_to_read() ? 0 : socket.read(nothing_left);
      if (got < 0) return false;
      if (got > 0) {
        received.note_read(nothing_left);
        return true;
      }
      socket.wait();
    }
  }
  void send() {
    std::uint32_t before = received.before_send();
    const bool sent = socket.send();
    if (mutant == mutation::asked_late) before = received.before_send();
    if (sent) received.note_send(before);
  }
};

int main() { return model::holds<finds_all>(400'000) ? 0 : 1; }
