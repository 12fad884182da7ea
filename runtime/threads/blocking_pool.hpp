#pragma once

// The threads of one runtime that may block. They run calls that would block a worker.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/runtime/threads/inherited_thread_state.hpp>
#include <ulexite/runtime/wait/agent.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ulexite::detail {

class runtime_state;

// One blocking call. The thread calls run(), marks itself idle, then calls finish(), which notifies the waiter. After
// finish() the object may be destroyed. The thread marks itself idle first, so that a follow-up call uses this thread
// again.
struct blocking_work : list_hook {
  virtual void* run() noexcept = 0;
  virtual void finish(void* what_run_gave) noexcept = 0;

  agent* caller = nullptr;  // waits for this call. Null: a lent thread's work, or given up. The pool's

 protected:
  ~blocking_work() = default;
};

// A pool with a thread for each call, up to a limit. Further calls wait in a queue, oldest first. Threads start when
// needed, and end after some time without work. If the system refuses a thread, the pool continues with its existing
// threads, if it has any. Any thread may use it.
class blocking_pool : public std::enable_shared_from_this<blocking_pool> {
 public:
  struct thread_hooks {
    std::function<void()> start, stop;  // called on each thread at its start and its end; may be empty
  };

  // Makes the pool of `rt`. Throws std::invalid_argument that names the option for a limit of 0 or a negative time.
  blocking_pool(const runtime_state& rt, std::size_t most_threads, std::chrono::milliseconds keep_alive,
                thread_hooks hooks);
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  // Runs `work` on a thread, now or when one is free. Never waits. Throws std::system_error if there is no thread and
  // the system refuses one; then the work was not taken.
  void submit(blocking_work& work);
  // Runs `work` on a thread without waiting in the queue. This thread does not count towards the limit while it runs
  // `work`. False, and the work is not taken, if the system refuses a thread. Does nothing if no thread has taken this
  // work since the last call.
  [[nodiscard]] bool lend_thread(blocking_work& work) noexcept;
  // The work of a lent thread has ended. Called by this thread.
  void thread_returns() noexcept;
  // Takes `work` back if it has not begun; false if it has.
  [[nodiscard]] bool withdraw(blocking_work& work) noexcept;

  // The runtime ends: joins the threads, except threads that run a call that its caller has given up. These end by
  // themselves. Drops work that has not begun.
  void shut() noexcept;
  // From now on shut does not wait for the running `work`. The caller must keep the objects that it uses alive.
  void give_up(blocking_work& work) noexcept;
  // Work that was given up has ended. Called by its thread.
  void given_up_ends() noexcept;

  struct counts {
    std::size_t threads, queued;
    std::size_t idle, lent;  // of the threads
  };
  [[nodiscard]] counts now() const noexcept;

  // A thread of the pool, and its call.
  struct member : list_hook {
    int thread = 0;                       // the kernel's number
    std::int64_t since = 0;               // when the call began, steady clock; 0: it runs none
    const blocking_work* work = nullptr;  // the call
  };
  // Calls visit(const member&) for each thread that runs a call. With the pool's mutex held, so that the caller of the
  // call goes on waiting. Any thread.
  template <class Visit>
  void for_each_call(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    members_.for_each([&](const member& each) {
      if (each.since != 0) visit(each);
    });
  }

 private:
  // Work that is still queued when the runtime has ended belongs to abandoned fibers.
  [[nodiscard]] bool nothing_to_do() const noexcept { return queue_.empty() || shut_; }
  // Whether the calling thread was lent, and other threads have taken its place since then.
  [[nodiscard]] bool is_surplus() const noexcept { return threads_.size() > most_ + count_.lent; }
  bool assign(blocking_work& work, std::size_t limit);
  void start_thread();
  void thread_main() noexcept;
  void serve(std::unique_lock<std::mutex>& lock, member& self) noexcept;
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

  // The numbers of threads in each state, which decide whether another thread is needed.
  struct headcount {
    std::size_t idle = 0;      // they wait and have not been called
    std::size_t called = 0;    // they were woken, and have not arrived yet
    std::size_t starting = 0;  // they were made, and have not arrived yet
    std::size_t lent = 0;      // they run work that is not a call, so they do not count towards most_
    std::size_t given_up = 0;  // they run work for which shut does not wait
  };

  const runtime_state& runtime_;  // may be destroyed when work that was given up ends
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
  intrusive_list<member> members_;
  std::thread last_ended_;  // it has joined the thread that ended before it
  bool shut_ = false;       // the runtime ends: queued work is dropped
};

}  // namespace ulexite::detail
