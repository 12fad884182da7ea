#include "connections.hpp"

#include <mutex>

namespace http_server {

connections::entry::entry(connections& all, ulexite::net::tcp_stream& stream) : all_(all), stream_(stream) {
  const std::lock_guard lock(all_.mutex_);
  place_ = all_.entries_.insert(all_.entries_.end(), this);
}

connections::entry::~entry() {
  const std::lock_guard lock(all_.mutex_);
  all_.entries_.erase(place_);
}

bool connections::entry::begin_idle() {
  const std::lock_guard lock(all_.mutex_);
  idle_ = !all_.stopping();
  return idle_;
}

void connections::entry::begin_request() {
  const std::lock_guard lock(all_.mutex_);
  idle_ = false;
}

void connections::close_all(bool idle_only) {
  const std::lock_guard lock(mutex_);
  stopping_.store(true, std::memory_order_relaxed);  // read under the mutex where it matters
  for (entry* const each : entries_)
    if (each->idle_ || !idle_only) each->stream_.close();
}

void connections::stop() { close_all(true); }

void connections::wait(std::chrono::seconds grace) {
  if (running_.wait_for(grace)) return;
  close_all(false);
  running_.wait();
}

}  // namespace http_server
