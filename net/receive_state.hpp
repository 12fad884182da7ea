#pragma once

// What a socket's last read tells of the next one: whether its reader asks the system first, or waits first.
//
// An edge stands for all there is at its time, so after a read that left nothing behind it is pointless to ask again:
// what comes later makes a new edge. With one exception: an error (a reset) that arrived in the same edge as the data,
// since libevent does not tell it from readiness. It would be missed for good. But a send fails on such a socket; so
// once a send that began after that read has succeeded, there was no error then, and an error from then on makes an
// edge. Hence a server that answers each request pays no read in vain, and a mere reader pays one per wait.
//
// A short read alone does not tell that nothing is left. A read of a Unix socket ends at a message that carries
// descriptors, and where another process goes on writing; one of TCP at the mark of urgent data; one over SCTP, or TLS
// in the kernel, at the end of a record. But plain TCP tells with each read what it has left (TCP_INQ).
//
// State
//   word_   the number of reads, and what is known. The reader writes it after each read; the writer moves it from drained
//           to quiet if the number is unchanged.
//
// Pairings
//   A  the reader stores drained in word_ after its read, release  ->  the writer loads it before its send, acquire: the
//      send comes after the read.
//   B  the writer changes drained to quiet after its send, acq_rel  ->  the reader loads word_, acquire. No mutant breaks
//      it: the edge that the reader then waits for comes with a lock.
//
// Checked by tests/model/receive_state_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class receive_state {
 public:
  // Whether a read would find nothing, neither data nor an error. The reader.
  [[nodiscard]] bool nothing_to_read() const noexcept {
    return (word_.load(std::memory_order_acquire) & known) == quiet;  // B
  }
  // After a read. `nothing_left`: it left nothing. The reader.
  void note_read(bool nothing_left) noexcept {
    const std::uint32_t number = (word_.load(std::memory_order_relaxed) & ~known) + one_read;  // the reader counts
    word_.store(number | (nothing_left ? drained : unknown), std::memory_order_release);       // A
  }
  // Before a send: what its note_send is given. The writer.
  [[nodiscard]] std::uint32_t before_send() const noexcept { return word_.load(std::memory_order_acquire); }  // A
  // After a send that has succeeded. The writer.
  void note_send(std::uint32_t before) noexcept {
    if ((before & known) != drained) return;
    const std::uint32_t after = (before & ~known) | quiet;
    word_.compare_exchange_strong(before, after, std::memory_order_acq_rel, std::memory_order_relaxed);  // B
  }

 private:
  enum : std::uint32_t {
    unknown,  // there may be more
    drained,  // the last read left nothing
    quiet,    // and a send has shown since that there was no error either: wait for an edge before asking
    known = 3,
    one_read = 4,
  };

  std::atomic<std::uint32_t> word_{unknown};
};

}  // namespace ulexite::detail
