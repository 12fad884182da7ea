#pragma once

// The threads of one runtime that may block: they run calls for which a worker must not be held.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/runtime/threads/inherited_thread_state.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ulexite::detail {

class runtime_state;

// One call, to run and then to finish, which tells whoever waits for it, and after which it may be gone. In between the
// thread declares itself free: so the next call that comes of the news finds it, and starts no other.
struct blocking_work : list_hook {
  virtual void* run() noexcept = 0;
  virtual void finish(void* what_run_gave) noexcept = 0;

 protected:
  ~blocking_work() = default;
};

// As many threads as there are calls, up to a limit; beyond it calls wait in a queue, oldest first. Threads start when
// they are needed and end when they had nothing to do for some time. A refused thread is done without as long as there
// is one. Any thread may use it.
class blocking_pool : public std::enable_shared_from_this<blocking_pool> {
 public:
  struct thread_hooks {
    std::function<void()> start, stop;  // called on each thread, first and last; or empty
  };

  // For the threads of `home`. Throws std::invalid_argument naming the option for no threads at all or a negative time.
  blocking_pool(const runtime_state& home, std::size_t most_threads, std::chrono::milliseconds keep_alive,
                thread_hooks hooks);
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  // Has a thread run `work`, now or when one is free. Never waits. Throws std::system_error when the machine gives not
  // one thread; then the work was not taken.
  void submit(blocking_work& work);
  // Has a thread run `work` at once, one that does not count as long as it does; false, and the work is not taken, when
  // the machine has no more threads.
  [[nodiscard]] bool lend_thread(blocking_work& work) noexcept;
  // What a lent thread does has come to its end. By itself.
  void thread_returns() noexcept;
  // Takes back what has not begun. False: it has.
  [[nodiscard]] bool withdraw(blocking_work& work) noexcept;

  // The runtime ends: joins the threads, except those that run what its caller has given up. These end by themselves.
  // What has not begun is dropped.
  void retire() noexcept;
  // The running `work` is not waited for by retire any more: by somebody who keeps what it uses alive.
  void give_up() noexcept;
  // Such work has come to its end. By itself.
  void given_up_ends() noexcept;

  struct counts {
    std::size_t threads, queued;
    std::size_t idle;  // of the threads
  };
  [[nodiscard]] counts now() const noexcept;

 private:
  // What is still queued when the runtime has ended was asked for by fibers that were abandoned.
  [[nodiscard]] bool nothing_to_do() const noexcept { return queue_.empty() || retired_; }
  // Was the calling thread lent, and have others taken its place meanwhile?
  [[nodiscard]] bool is_surplus() const noexcept { return threads_.size() > most_ + count_.lent; }
  bool assign(blocking_work& work, std::size_t limit);
  void start_thread();
  void thread_main() noexcept;
  void serve(std::unique_lock<std::mutex>& lock) noexcept;
  [[nodiscard]] std::thread leave() noexcept;

  // The calls that have not begun, oldest first.
  class work_queue {
   public:
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    void push_back(blocking_work& work) noexcept {
      list_.push_back(work);
      ++size_;
    }
    void push_front(blocking_work& work) noexcept {
      list_.push_front(work);
      ++size_;
    }
    void remove(blocking_work& work) noexcept {
      list_.remove(work);
      --size_;
    }
    [[nodiscard]] blocking_work& front() noexcept { return list_.front(); }

   private:
    intrusive_list<blocking_work> list_;
    std::size_t size_ = 0;
  };

  // What the threads are at, as far as it decides whether another is needed.
  struct headcount {
    std::size_t idle = 0;      // wait, and have not been called
    std::size_t called = 0;    // were called out of their wait, and have not come yet
    std::size_t starting = 0;  // were made, and have not come yet
    std::size_t lent = 0;      // run what counts as no call, so they do not count towards most_
    std::size_t given_up = 0;  // run what retire does not wait for
  };

  const runtime_state& home_;  // may be gone when what was given up ends
  const std::size_t most_;
  const std::chrono::milliseconds keep_alive_;
  const thread_hooks hooks_;
  const inherited_thread_state manners_;
  mutable std::mutex mutex_;       // guards the rest
  std::condition_variable wake_;   // a thread is called, or the runtime ends
  std::condition_variable ended_;  // a thread has ended, or was given up
  work_queue queue_;
  headcount count_;
  std::vector<std::thread> threads_;
  std::thread last_ended_;  // has joined the one that ended before it
  bool retired_ = false;    // the runtime ends: what is queued is dropped
};

}  // namespace ulexite::detail
