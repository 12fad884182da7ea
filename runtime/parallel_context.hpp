#pragma once

#include <ulexite/runtime/runtime.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite {

// Workers of its own beside those of the calling fiber's runtime, for work that must not wait for other work: a pool for
// requests beside one for reports. What a fiber in it spawns stays in it. Channels and all else work across. It is a
// runtime with a name, which can be made and ended inside a fiber; its threads carry the name. Crystal's parallel
// execution context.
class parallel_context {
 public:
  // With at most `threads` workers (0: as runtime_options::threads), and at most `max_threads` by resize, or as many as
  // `threads` or the machine's processors if that is 0. Throws as runtime's constructor does.
  explicit parallel_context(std::string_view name, std::size_t threads = 0, std::size_t max_threads = 0);
  // Asks its fibers to stop, waits until all have ended, and ends its threads. A fiber that waits lets the others of
  // its worker run. Not a cancellation point. In one of its own fibers it ends nothing, and says so on stderr.
  ~parallel_context();
  parallel_context(const parallel_context&) = delete;
  parallel_context& operator=(const parallel_context&) = delete;

  // Starts a fiber in it, from any thread: all forms of runtime::spawn.
  template <detail::spawnable F>
  auto spawn(F&& function, std::source_location where = std::source_location::current()) {
    return runtime_.spawn(std::forward<F>(function), where);
  }
  template <class F, class... A>
    requires(sizeof...(A) > 0 && detail::spawnable<F, A...>)
  [[gnu::always_inline]] auto spawn(F&& function, A&&... arguments) {
    return runtime_.spawn(std::forward<F>(function), std::forward<A>(arguments)...);
  }
  template <class F, class... A>
    requires detail::spawnable<F, A...>
  auto spawn(const fiber_options& options, F&& function, A&&... arguments) {
    return runtime_.spawn(options, std::forward<F>(function), std::forward<A>(arguments)...);
  }

  // runtime::resize.
  void resize(std::size_t threads) { runtime_.resize(threads); }
  // Asks its fibers to stop, those spawned later too. Sticky. Never waits. Any thread.
  void request_stop() noexcept { runtime_.request_stop(); }
  // Valid as long as the context.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  // For its metrics and dumps.
  [[nodiscard]] ulexite::runtime& runtime() noexcept { return runtime_; }

 private:
  const std::string name_;
  ulexite::runtime runtime_;
};

}  // namespace ulexite
