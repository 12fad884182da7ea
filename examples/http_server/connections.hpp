#pragma once

#include <ulexite/net/tcp.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>

namespace http_server {

// The connections that are open, so that a stop can end those between two requests, and wait for the others.
class connections {
 public:
  // One connection's entry, in the frame of the fiber that serves it.
  class entry {
   public:
    entry(connections& all, ulexite::net::tcp_stream& stream);
    ~entry();
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

    // Between two requests a stop closes the stream. False: it has, or will not let another one in.
    [[nodiscard]] bool begin_idle();
    void begin_request();

   private:
    friend class connections;
    connections& all_;
    ulexite::net::tcp_stream& stream_;
    bool idle_ = false;
    std::list<entry*>::iterator place_;
  };

  // Starts a fiber that this waits for.
  template <class F>
  void spawn(F&& serve) {
    running_.spawn(static_cast<F&&>(serve));
  }

  // Closes the idle ones, and no other becomes idle.
  void stop();
  // Waits until all have ended; those left after `grace` are closed in the middle of what they do.
  void wait(std::chrono::seconds grace);
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  std::atomic<std::uint64_t> accepted{0}, requests{0};

 private:
  void close_all(bool idle_only);

  ulexite::mutex mutex_;
  std::list<entry*> entries_;  // guarded by mutex_, and so are their idle_
  std::atomic<bool> stopping_{false};
  ulexite::wait_group running_;
};

}  // namespace http_server
