#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/libevent_setup.hpp>

#include <event2/event.h>
#include <event2/thread.h>
#include <pthread.h>

#include <cerrno>
#include <system_error>

namespace ulexite::detail {
namespace {

struct thread_mode {
  bool as_loop = false;
  bool muted = false;
};

constinit thread_local thread_mode mode;

// Not inlined, because fibers move between threads: a caller must not keep the address of a thread_local over a switch.
[[gnu::noinline]] void set_mode(thread_mode value) noexcept {
  mode = value;
  asm volatile("" ::: "memory");
}

unsigned long thread_id() noexcept {
  constexpr unsigned long loop_id = 1;  // not a pthread_t, because those are addresses
  return mode.as_loop ? loop_id : static_cast<unsigned long>(pthread_self());
}

void report(int severity, const char* message) noexcept {
  if (severity < EVENT_LOG_WARN || mode.muted) return;
  const int error = errno;
  warn("libevent: %s", message);
  errno = error;
}

bool set_up_once() {
  // Another user of libevent may have set up threads already. These locks are accepted, other locks are not.
  if (evthread_use_pthreads() != 0) {
    throw std::system_error(EBUSY, std::system_category(), "ulexite: setting up libevent's locks");
  }
  evthread_set_id_callback(thread_id);
  event_set_log_callback(report);
  return true;
}

}  // namespace

void set_up_libevent() { [[maybe_unused]] static const bool done = set_up_once(); }

loop_thread_scope::loop_thread_scope(bool mute) noexcept { set_mode({true, mute}); }
loop_thread_scope::~loop_thread_scope() { set_mode({}); }

}  // namespace ulexite::detail
