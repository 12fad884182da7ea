#pragma once

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/wait/locals.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace ulexite {

// Runs one computation on its own thread: a loop of a GUI, an OpenGL context, a library that needs one thread. The
// computation uses channels, locks and all other objects as a fiber does, but its waits block the thread. It can be
// asked to stop. Its spawns go to the runtime. It corresponds to Crystal's isolated execution context.
class isolated_context {
 public:
  // Starts a thread that calls body(arguments...), or body(std::stop_token, arguments...). Its spawns go to the runtime
  // of the calling fiber, which must outlive it. The system shows 15 characters of the name. Throws errc::no_runtime
  // outside a runtime, std::system_error if the system refuses the thread.
  template <class F, class... A>
    requires detail::spawnable<F, A...>
  explicit isolated_context(std::string_view name, F&& body, A&&... arguments)
      : runtime_(detail::this_runtime_state()), name_(name) {
    if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<A>...>) {
      start(detail::bind_arguments(
          [body = std::decay_t<F>(std::forward<F>(body)), this](auto&&... values) mutable {
            detail::call_function(std::move(body), stop_.get_token(), std::forward<decltype(values)>(values)...);
          },
          std::forward<A>(arguments)...));
    } else {
      start(detail::bind_arguments(std::forward<F>(body), std::forward<A>(arguments)...));
    }
  }
  // Asks the computation to stop and waits for its end. An exception that join() did not throw goes to
  // runtime_options::on_unhandled_exception, except operation_cancelled after a request to stop. On the context's own
  // thread it ends the process with a report, because it would wait for itself.
  ~isolated_context();
  isolated_context(const isolated_context&) = delete;
  isolated_context& operator=(const isolated_context&) = delete;

  // Waits for the end of the computation, and throws the body's exception. Suspends a calling fiber. Not a cancellation
  // point. May be called again, and then throws the exception again. Throws usage_error on the context's own thread.
  void join();
  // Whether it has ended. Never waits.
  [[nodiscard]] bool done() const noexcept { return done_.is_set(); }
  // Asks the computation to stop: its present or next cancellation point throws operation_cancelled. That does not end
  // a call that blocks the thread, such as net::resolve of a name. Never waits. Any thread.
  void request_stop() noexcept;
  // The name; valid as long as the context.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }

 private:
  // The body and the thread's fiber_local values are destroyed before the end is reported. Their destructors may use
  // what the caller destroys after that, and may wait for fibers.
  template <class Body>
  void start(Body body) {
    thread_ = std::thread([this, body = std::optional<Body>(std::move(body))]() mutable {
      enter();
      try {
        detail::call_function(std::move(*body));
      } catch (const operation_cancelled&) {
        fail(stop_.stop_requested());
      } catch (...) {
        fail(false);
      }
      {
        const shield uninterrupted;
        detail::this_agents_locals().clear();
        body.reset();
        detail::this_agents_locals().clear();  // those that the body's end has made
      }
      leave();
    });
  }
  // Called in a handler: the body's exception. `known`: it only reports a request to stop.
  void fail(bool known) noexcept {
    failure_ = std::current_exception();
    failure_known_.store(known, std::memory_order_relaxed);  // published by done_
  }
  void enter();
  void leave() noexcept;
  [[nodiscard]] bool is_on_its_thread() noexcept;

  detail::runtime_state& runtime_;
  const std::string name_;
  std::stop_source stop_;         // for bodies that take a token
  std::mutex guard_;              // guards who_
  detail::agent* who_ = nullptr;  // the thread's, while it can be asked to stop
  std::exception_ptr failure_;    // written before done_ is set
  // State: join has thrown failure_, or it answers a stop. So the destructor does not report it.
  std::atomic<bool> failure_known_{false};
  event done_;  // set when the body has ended
  std::thread thread_;
};

}  // namespace ulexite
