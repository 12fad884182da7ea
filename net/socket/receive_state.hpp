#pragma once

// The knowledge about a socket's next read after the last one. It decides whether the reader calls read first, or waits
// first.
//
// An edge reports all data that is there at its time. So after a read that left nothing, another read is useless: later
// data makes a new edge. There is one exception: an error (a reset) that arrived in one edge with the data, because
// libevent does not distinguish it from readiness. A reader that waited would never see this error. But a send fails on
// such a socket. So if a send that began after the read has succeeded, there was no error then, and a later error makes
// an edge. So a server that answers each request makes no useless read, and a pure reader makes one per wait.
//
// A short read alone does not prove that nothing is left. A read of a Unix socket ends at a message that carries
// descriptors, and also where another process continues to write. A read of TCP ends at the mark of urgent data. A read
// over SCTP, or TLS in the kernel, ends at the end of a record. But plain TCP reports with each read the number of
// bytes left (TCP_INQ).
//
// State
//   word_   the number of reads, and the knowledge about the next one. The reader writes it after each read; the writer
//           moves it from drained to quiet if the number is unchanged.
//
// Pairings
//   A  the reader stores drained in word_ after its read, release  ->  the writer loads it before its send, acquire:
//      the send comes after the read.
//   B  the writer changes drained to quiet after its send, acq_rel  ->  the reader loads word_, acquire. No mutant
//      breaks it: the edge that the reader then waits for comes with a lock.
//
// Checked by tests/model/receive_state_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class receive_state {
 public:
  // Whether a read would find neither data nor an error. Called by the reader.
  [[nodiscard]] bool nothing_to_read() const noexcept {
    return (word_.load(std::memory_order_acquire) & known) == quiet;  // B
  }
  // Called by the reader after a read. `nothing_left`: the read left no data.
  void note_read(bool nothing_left) noexcept {
    const std::uint32_t number = (word_.load(std::memory_order_relaxed) & ~known) + one_read;  // the reader counts
    word_.store(number | (nothing_left ? drained : unknown), std::memory_order_release);       // A
  }
  // Called by the writer before a send. Returns the argument for note_send.
  [[nodiscard]] std::uint32_t before_send() const noexcept { return word_.load(std::memory_order_acquire); }  // A
  // Called by the writer after a successful send.
  void note_send(std::uint32_t before) noexcept {
    if ((before & known) != drained) return;
    const std::uint32_t after = (before & ~known) | quiet;
    word_.compare_exchange_strong(before, after, std::memory_order_acq_rel, std::memory_order_relaxed);  // B
  }

 private:
  enum : std::uint32_t {
    unknown,  // there may be more
    drained,  // the last read left nothing
    quiet,    // as drained, and a later send has proved that there was no error: wait for an edge first
    known = 3,
    one_read = 4,
  };

  std::atomic<std::uint32_t> word_{unknown};
};

}  // namespace ulexite::detail
