#pragma once

#include <ulexite/base/panic.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/evloop/event.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <mutex>

namespace ulexite::detail {

// The readiness of one descriptor, and its waiters. Readiness arrives as edges. Each edge is either remembered (once,
// in `ready`) or given to the waiting event, never both. One lock guards all of it, and claims too. So an event that
// was taken back or claimed is not touched afterwards.
//
// Per direction: waiting implies !ready. Closed implies that no event waits.
//
// The end of the stream is remembered for ever (`hung_up`). It can arrive in one edge with the last data. A reader that
// takes only this data would then wait for an edge that never arrives. libevent reports only a shutdown (EPOLLRDHUP).
// Errors, and the hang-up of a pipe, arrive as plain edges of both directions. So a waiter may arm after a short read
// of a stream socket that had no error, and always after EAGAIN. A datagram socket has no end of the stream: after its
// shutdown a read still finds nothing.
//
// An edge may be old, from an earlier use of the source or of the descriptor number. A turn of the loop fetches edges
// from the kernel. Before it delivers them, the source and the number can be closed and opened again. libevent finds
// its events by number, so it gives the old edge to the new use. This happens only in the turn in which the new use
// began, because later turns fetch after the old registration was removed. An old edge causes one useless try, which is
// allowed. An old hang-up would last for ever, so in that turn the kernel is asked again.
class readiness {
 public:
  // `fd` stays open until close is called. `turn` is the loop's present turn, or its last.
  void open(int fd, std::uint64_t turn) noexcept {
    std::lock_guard guard(lock_);
    fd_ = fd;
    opened_in_turn_ = turn;
    closed_ = hung_up_ = false;
    read_ = write_ = {};
  }

  // Claims both waiting events, and appends the claimed ones to `woken`.
  void close(event_list& woken) noexcept {
    std::lock_guard guard(lock_);
    if (closed_) panic("a descriptor's source was closed twice");
    closed_ = true;
    for (side* each : {&read_, &write_}) {
      hand_over(*each, woken);
      each->ready = false;
    }
  }

  [[nodiscard]] bool arm(direction direction, event& event) noexcept {
    std::lock_guard guard(lock_);
    side& here = at(direction);
    if (here.waiting) panic("a second event waits to %s one descriptor", name(direction));
    if (closed_ || (hung_up_ && direction == direction::read)) return false;
    if (here.ready) {
      here.ready = false;
      return false;
    }
    here.waiting = &event;
    return true;
  }

  void disarm(direction direction, event& event) noexcept {
    std::lock_guard guard(lock_);
    side& here = at(direction);
    if (here.waiting == &event) here.waiting = nullptr;
  }

  // An edge has arrived in `turn`. Claims the waiting events, and appends the claimed ones to `winners`.
  void fire(bool readable, bool writable, bool hung_up, std::uint64_t turn, event_list& winners) noexcept {
    std::lock_guard guard(lock_);
    if (closed_) return;  // an old edge
    if (hung_up && !hung_up_) hung_up_ = (opened_in_turn_ != turn || kernel_says_hung_up()) && has_an_end();
    if (readable || hung_up) read_.ready = !hand_over(read_, winners);
    if (writable) write_.ready = !hand_over(write_, winners);
  }

 private:
  struct side {
    event* waiting = nullptr;
    bool ready = false;
  };

  side& at(direction direction) noexcept { return direction == direction::read ? read_ : write_; }
  static const char* name(direction direction) noexcept { return direction == direction::read ? "read" : "write"; }

  [[nodiscard]] bool kernel_says_hung_up() const noexcept {
    pollfd query{fd_, POLLRDHUP, 0};
    return ::poll(&query, 1, 0) == 1 && (query.revents & POLLRDHUP);
  }

  // A simulated descriptor is none of the kernel's.
  [[nodiscard]] bool has_an_end() const noexcept {
    int type = 0;
    socklen_t size = sizeof type;
    return ::getsockopt(fd_, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM || type == SOCK_SEQPACKET;
  }

  // True: the waiting event took the edge.
  static bool hand_over(side& here, event_list& winners) noexcept {
    event* const waiting = here.waiting;
    here.waiting = nullptr;
    if (!waiting || !waiting->claim(*waiting)) return false;
    winners.push(*waiting);
    return true;
  }

  spin_lock lock_;                    // guards the rest
  bool closed_ = true;                // the source is unused: arm fails, and edges are dropped
  bool hung_up_ = false;              // the end of the stream has been reported: reads are always ready
  int fd_ = -1;                       // to ask the kernel about a hang-up that may be old
  std::uint64_t opened_in_turn_ = 0;  // the loop's turn in which this use began: its edges may be old
  side read_;
  side write_;
};

}  // namespace ulexite::detail
