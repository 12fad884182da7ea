#pragma once

// The event loop's text under Relacy, without libevent and the kernel. A model defines model::write_eventfd, and
// includes "relacy_agents.hpp" and then this header. It defines event_assign, event_add, event_del and event_base_loop
// after it.
//
// EDIT: the kernel
//   evloop/event_loop.cpp: ::write( => model::write_eventfd(
//   evloop/event_loop.cpp: wakefd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), => wakefd(1'000'000),
//   evloop/timers.cpp: timerfd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)), => timerfd_(1'000'001),
//   evloop/owned_fd.hpp: ::close(fd_); =>

#include <ulexite/evloop/event_loop.cpp>
#include <ulexite/evloop/timers.cpp>

inline int the_base;  // its address stands for libevent's objects
event_config* event_config_new() { return reinterpret_cast<event_config*>(&the_base); }
void event_config_free(event_config*) {}
int event_config_require_features(event_config*, int) { return 0; }
int event_config_set_flag(event_config*, int) { return 0; }
event_base* event_base_new_with_config(const event_config*) { return reinterpret_cast<event_base*>(&the_base); }
void event_base_free(event_base*) {}
void event_active(event*, int, short) {}  // no model refuses the eventfd
int event_base_get_features(const event_base*) { return 0; }
void ulexite::detail::set_up_libevent() {}
ulexite::detail::loop_thread_scope::loop_thread_scope(bool) noexcept {}
ulexite::detail::loop_thread_scope::~loop_thread_scope() {}
ulexite::detail::standard_descriptors_taken::standard_descriptors_taken() {}
ulexite::detail::standard_descriptors_taken::~standard_descriptors_taken() {}
