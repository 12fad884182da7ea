#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>

namespace ulexite {

struct runtime_options {
  // Most worker threads. 0: the environment variable ULEXITE_THREADS, else the processors that affinity and the control
  // group's quota allow. They are started as work appears; a refused one is done without as long as one runs.
  std::size_t threads = 0;
  // Bytes of address space of a fiber's stack, rounded up to a power of two. Memory is committed on first touch.
  std::size_t stack_size = 256 * 1024;
  // Most live fibers, the main fiber included; a spawn beyond throws errc::limit_reached. 0: bounded by memory only.
  std::size_t max_fibers = 0;
  // Told of an exception that left a fiber and that nobody took. Called by the worker that ends the fiber, or by
  // whoever drops its handle. It must not throw. Default: report on stderr, then std::terminate.
  std::function<void(std::string_view fiber_name, std::exception_ptr)> on_unhandled_exception{};
  // Called on each worker thread, first and last, with its number.
  std::function<void(std::size_t worker)> on_thread_start{}, on_thread_stop{};
};

}  // namespace ulexite
