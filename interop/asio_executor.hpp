#pragma once

// The part of asio_fiber.hpp that has no completion token: the workers as an executor, and a thread for an io_context.

#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace ulexite {

// The workers of a runtime as an executor of Asio, for bind_executor, make_strand, co_spawn and any_io_executor. Each
// function runs in a fiber of its own, so it may wait. Not so a handler of a make_strand(fiber_executor()), which gets
// usage_error, because a strand of Asio keeps a link of the thread in the handler's frame. A concurrent_context runs
// one at a time too, and its fibers may wait. Copies are equal. Any thread may use it. The runtime must live until the
// last function has ended. So whatever hands functions to the executor, as an io_context_thread does, must end before
// the runtime's shutdown begins.
class fiber_executor {
  // Asio demands one of each executor: the strands of an executor live in it.
  struct context : boost::asio::execution_context {
    explicit context(runtime& its_runtime) noexcept : in(its_runtime) {}
    ~context() {
      shutdown();
      destroy();
    }
    runtime& in;
  };

  template <class F>
  struct call {
    std::shared_ptr<context> keeps;  // longer than the function, whose destructor may use a service of the context
    F function;
    void operator()() {
      std::optional<no_suspend_scope> in_strand;
      if constexpr (requires { typename F::on_invoker_exit; }) in_strand.emplace("a handler in a strand of Asio");
      std::move(function)();
    }
  };

 public:
  // An executor on the workers of `in`, without one those of the caller's runtime; then throws errc::no_runtime outside
  // of any. Throws std::bad_alloc.
  explicit fiber_executor(runtime& in = current_runtime()) : context_(std::make_shared<context>(in)) {}

  // Calls the function in a new fiber. It does not inherit the caller's deadline, because in a strand it also runs
  // functions of others. Its exceptions go to runtime_options::on_unhandled_exception. Never waits. Throws as
  // runtime::spawn.
  template <class F>
  void execute(F&& function) const {
    const shield from_deadlines;
    // Asio counts on the call, so it is made after a request to stop too.
    context_->in.spawn(detail::awaited_call{call<std::decay_t<F>>{context_, std::forward<F>(function)}}).detach();
  }

  // Properties, as Asio demands them: the context, never blocking, and functions that may wait.
  [[nodiscard]] boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
    return *context_;
  }
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  // The same executor, which never blocks.
  [[nodiscard]] fiber_executor require(boost::asio::execution::blocking_t::never_t) const noexcept { return *this; }
  // Whether both are copies of one executor.
  friend bool operator==(const fiber_executor& a, const fiber_executor& b) noexcept { return a.context_ == b.context_; }

 private:
  std::shared_ptr<context> context_;
};

// Runs an io_context on a thread of its own for as long as this object exists. Several may run one io_context. An
// exception of a handler ends the process, because nothing could catch it.
class io_context_thread {
 public:
  // Starts the thread. `context` must outlive it; if it was stopped, it is restarted. Throws std::system_error if the
  // system refuses the thread.
  explicit io_context_thread(boost::asio::io_context& context)
      : context_(restarted(context)), work_(context.get_executor()), thread_([this] {
          context_.run();
          ended_.set();
        }) {}
  io_context_thread(const io_context_thread&) = delete;
  io_context_thread& operator=(const io_context_thread&) = delete;
  // Stops the io_context and waits for the handler under way: a fiber is suspended. Handlers that have not begun stay
  // in the io_context. So wait for the fibers that use it first. Not a cancellation point.
  ~io_context_thread() {
    work_.reset();
    context_.stop();
    {
      const shield until_it_has_ended;  // without it a handler that waits for a fiber of this worker could not end
      ended_.wait();
    }
    thread_.join();
  }

 private:
  static boost::asio::io_context& restarted(boost::asio::io_context& context) {
    if (context.stopped()) context.restart();
    return context;
  }

  boost::asio::io_context& context_;
  event ended_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace ulexite
