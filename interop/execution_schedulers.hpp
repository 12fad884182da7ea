#pragma once

// The schedulers of <ulexite/interop/execution.hpp>, which finds the library of senders here.

#include <ulexite/base/job.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/spawn.hpp>

#include <version>

#if defined(ULEXITE_SENDERS)
#elif defined(__cpp_lib_senders)
#include <execution>
#include <stop_token>
#define ULEXITE_SENDERS ::std::execution
#define ULEXITE_SENDERS_STOP ::std
#elif __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
#define ULEXITE_SENDERS ::stdexec
#elif __has_include(<beman/execution/execution.hpp>)
#include <beman/execution/execution.hpp>
#define ULEXITE_SENDERS ::beman::execution
#else
#error "<ulexite/interop/execution.hpp> needs senders: C++26's <execution>, stdexec, or beman::execution"
#endif
#if !defined(ULEXITE_SENDERS_STOP)  // where the stop tokens are
#define ULEXITE_SENDERS_STOP ULEXITE_SENDERS
#endif

#include <exception>
#include <type_traits>
#include <utility>

namespace ulexite::execution {

namespace detail {

namespace ex = ULEXITE_SENDERS;
namespace stop = ULEXITE_SENDERS_STOP;

template <class Receiver>
bool stop_wanted(const Receiver& of) noexcept {
  return stop::get_stop_token(ex::get_env(of)).stop_requested();
}

// What schedule() of a scheduler returns, and what that says of itself.
template <class Scheduler, class... Completions>
class schedule_sender {
 public:
  using sender_concept = ex::sender_tag;
  using completion_signatures = ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t(), Completions...>;
  template <class...>
  static consteval completion_signatures get_completion_signatures() noexcept {
    return {};
  }

  explicit schedule_sender(const Scheduler& on) noexcept : on_(on) {}
  template <class Receiver>
  [[nodiscard]] auto connect(Receiver to) const {
    return typename Scheduler::template operation<Receiver>(on_, std::move(to));
  }
  struct attributes {
    Scheduler on;
    template <class Tag>
    [[nodiscard]] Scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept
      requires(std::is_same_v<Tag, ex::set_value_t> || std::is_same_v<Tag, ex::set_stopped_t>)
    {
      return on;
    }
  };
  [[nodiscard]] attributes get_env() const noexcept { return {on_}; }

 private:
  Scheduler on_;
};

}  // namespace detail

// A scheduler whose schedule() completes in a job, so its operations take no memory, and what continues there must not
// wait. Completes with set_stopped if a stop was requested before, or the runtime has ended.
class job_scheduler {
 public:
  using scheduler_concept = detail::ex::scheduler_tag;  // as std::execution demands

  // The workers of `in`.
  explicit job_scheduler(runtime& in) noexcept : in_(&in) {}
  // Whether both have the same workers.
  friend bool operator==(const job_scheduler&, const job_scheduler&) = default;
  // The sender.
  [[nodiscard]] auto schedule() const noexcept { return detail::schedule_sender<job_scheduler>(*this); }
  // Weakly parallel, because what continues in a job must not wait.
  [[nodiscard]] auto query(detail::ex::get_forward_progress_guarantee_t) const noexcept {
    return detail::ex::forward_progress_guarantee::weakly_parallel;
  }

 private:
  template <class, class...>
  friend class detail::schedule_sender;

  template <class Receiver>
  struct operation : job {
    using operation_state_concept = detail::ex::operation_state_tag;
    runtime* in;
    Receiver to;

    operation(const job_scheduler& on, Receiver r) : in(on.in_), to(std::move(r)) {
      run = [](job* me) noexcept {
        auto& self = *static_cast<operation*>(me);
        if (detail::stop_wanted(self.to)) return detail::ex::set_stopped(std::move(self.to));
        detail::ex::set_value(std::move(self.to));
      };
    }
    operation(operation&&) = delete;
    void start() & noexcept {
      try {
        in->schedule(*this);
      } catch (...) {
        detail::ex::set_stopped(std::move(to));
      }
    }
  };

  runtime* in_;
};

// A scheduler whose schedule() completes in a new fiber, so what continues there may wait. Completes with set_error if
// the spawn fails, and with set_stopped if a stop was requested before the fiber runs.
class fiber_scheduler {
 public:
  using scheduler_concept = detail::ex::scheduler_tag;  // as std::execution demands

  // The workers of `in`. Null: those of the runtime in which an operation starts.
  explicit fiber_scheduler(runtime* in) noexcept : in_(in) {}
  // Whether both have the same workers.
  friend bool operator==(const fiber_scheduler&, const fiber_scheduler&) = default;
  // The sender.
  [[nodiscard]] auto schedule() const noexcept {
    return detail::schedule_sender<fiber_scheduler, detail::ex::set_error_t(std::exception_ptr)>(*this);
  }
  // Parallel, because what continues in a fiber may wait.
  [[nodiscard]] auto query(detail::ex::get_forward_progress_guarantee_t) const noexcept {
    return detail::ex::forward_progress_guarantee::parallel;
  }
  // The same workers, by jobs. Throws errc::no_runtime if no runtime was given and the caller is outside one.
  [[nodiscard]] job_scheduler as_jobs() const { return job_scheduler(in_ ? *in_ : current_runtime()); }
  // Starts `function` in a fiber of these workers. Throws as spawn.
  template <class F>
  auto spawn(F&& function) const {
    return in_ ? in_->spawn(std::forward<F>(function)) : ulexite::spawn(std::forward<F>(function));
  }

 private:
  template <class, class...>
  friend class detail::schedule_sender;

  template <class Receiver>
  struct operation {
    using operation_state_concept = detail::ex::operation_state_tag;
    runtime* in;
    Receiver to;

    operation(const fiber_scheduler& on, Receiver r) : in(on.in_), to(std::move(r)) {}
    operation(operation&&) = delete;
    void start() & noexcept {
      try {
        fiber_scheduler(in)
            .spawn(ulexite::detail::awaited_call{[this]() noexcept {
              if (detail::stop_wanted(to)) return detail::ex::set_stopped(std::move(to));
              detail::ex::set_value(std::move(to));
            }})
            .detach();
      } catch (...) {
        detail::ex::set_error(std::move(to), std::current_exception());
      }
    }
  };

  runtime* in_;
};

// The workers of `in`, or of the caller's runtime, as a scheduler. Its operations must end before that runtime. Without
// an argument it throws errc::no_runtime outside a runtime.
[[nodiscard]] inline fiber_scheduler workers(runtime& in) noexcept { return fiber_scheduler(&in); }
[[nodiscard]] inline fiber_scheduler workers() { return fiber_scheduler(&current_runtime()); }

}  // namespace ulexite::execution
