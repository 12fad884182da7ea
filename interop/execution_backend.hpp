#pragma once

// The workers as the parallel_scheduler of std::execution (P2079R10), if the library of senders has it. A program makes
// them that by a definition of its own:
//
//   std::shared_ptr<P::parallel_scheduler_backend> P::query_parallel_scheduler_backend() {
//     return std::make_shared<ulexite::execution::parallel_backend>(rt);
//   }
//
// P is the library's parallel_scheduler_replacement, as std::execution::parallel_scheduler_replacement.

#include <ulexite/interop/execution.hpp>
#include <ulexite/sync/parallel_for.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <utility>

namespace ulexite::execution {

// A backend of the parallel_scheduler. What is scheduled runs in a fiber, because users of the parallel_scheduler may
// wait there. A bulk is spread over the workers, and each of its functions may wait too.
class parallel_backend final : public detail::ex::parallel_scheduler_replacement::parallel_scheduler_backend {
  using receiver_proxy = detail::ex::parallel_scheduler_replacement::receiver_proxy;
  using bulk_proxy = detail::ex::parallel_scheduler_replacement::bulk_item_receiver_proxy;

 public:
  // The workers of `in`, which must outlive all uses of the parallel_scheduler.
  explicit parallel_backend(runtime& in) noexcept : in_(in) {}

  // As std::execution demands. They complete with set_error if the spawn fails, and a bulk with set_stopped if the
  // runtime asks its fibers to stop.
  void schedule(receiver_proxy& to, std::span<std::byte>) noexcept override {
    spawn(to, [&to]() noexcept { to.set_value(); });
  }
  // As schedule; a fiber for each of a few parts.
  void schedule_bulk_chunked(std::size_t count, bulk_proxy& to, std::span<std::byte>) noexcept override {
    spawn_bulk(count, to, [&to](std::size_t from, std::size_t until) noexcept { to.execute(from, until); });
  }
  // As schedule_bulk_chunked, which calls for each index alone.
  void schedule_bulk_unchunked(std::size_t count, bulk_proxy& to, std::span<std::byte>) noexcept override {
    spawn_bulk(count, to, [&to](std::size_t from, std::size_t until) noexcept {
      for (std::size_t i = from; i < until; ++i) to.execute(i, i + 1);
    });
  }

 private:
  template <class F>
  void spawn(receiver_proxy& to, F function) noexcept {
    try {
      in_.spawn(ulexite::detail::awaited_call{std::move(function)}).detach();
    } catch (...) {
      to.set_error(std::current_exception());
    }
  }
  template <class F>
  void spawn_bulk(std::size_t count, bulk_proxy& to, F chunk) noexcept {
    spawn(to, [count, &to, chunk]() noexcept {
      const std::size_t chunks = std::min<std::size_t>(count, 64);
      try {
        parallel_for(std::size_t{0}, chunks,
                     [&](std::size_t i) { chunk(count * i / chunks, count * (i + 1) / chunks); });
      } catch (const operation_cancelled&) {  // the runtime's end
        return to.set_stopped();
      } catch (...) {
        return to.set_error(std::current_exception());
      }
      to.set_value();
    });
  }

  runtime& in_;
};

}  // namespace ulexite::execution
