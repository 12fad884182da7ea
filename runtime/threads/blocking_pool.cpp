#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/time.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace ulexite::detail {

blocking_pool::blocking_pool(const runtime_state& rt, std::size_t most_threads, std::chrono::milliseconds keep_alive,
                             thread_hooks hooks)
    : runtime_(rt),
      most_(std::min(most_threads, SIZE_MAX / 2)),  // lent threads are added to it
      keep_alive_(std::min<std::chrono::milliseconds>(keep_alive, std::chrono::hours(24 * 365))),
      hooks_(std::move(hooks)) {
  if (most_threads == 0) throw std::invalid_argument("runtime_options::blocking_threads is 0, and must be at least 1");
  if (keep_alive < keep_alive.zero())
    throw std::invalid_argument(
        "runtime_options::blocking_keep_alive is negative: " + std::to_string(keep_alive.count()) + " ms");
}

// The thread is made with the mutex held, so that no caller relies on a thread that the system then refuses.
void blocking_pool::start_thread() {
  threads_.emplace_back([self = shared_from_this()] { self->thread_main(); });
  ++count_.starting;
}

// Finds a thread for the work, which is in the queue. Mutex held. False: all threads are busy, and the system or the
// `limit` allows no other.
bool blocking_pool::assign(blocking_work& work, std::size_t limit) {
  if (count_.called + count_.starting >= queue_.size()) return true;  // enough are coming
  if (count_.idle > 0) {
    --count_.idle;
    ++count_.called;
    wake_.notify_one();
    return true;
  }
  if (threads_.size() >= limit) return false;
  try {
    start_thread();
    return true;
  } catch (...) {
    if (threads_.size() > count_.lent) return false;  // a thread will take it from the queue
    queue_.remove(work);
    throw;
  }
}

void blocking_pool::submit(blocking_work& work) {
  const std::lock_guard lock(mutex_);
  work.caller = &this_agent();
  queue_.push_back(work);
  assign(work, most_ + count_.lent);
}

// The work goes to the front of the queue, so that a thread that just becomes free takes it.
bool blocking_pool::lend_thread(blocking_work& work) noexcept try {
  const std::lock_guard lock(mutex_);
  if (work.linked()) return true;  // a thread is on its way
  queue_.push_front(work);
  ++count_.lent;
  if (assign(work, SIZE_MAX)) return true;
  queue_.remove(work);
  --count_.lent;
  return false;
} catch (...) {
  thread_returns();
  return false;
}

void blocking_pool::thread_returns() noexcept {
  const std::lock_guard lock(mutex_);
  --count_.lent;
}

bool blocking_pool::withdraw(blocking_work& work) noexcept {
  const std::lock_guard lock(mutex_);
  if (!work.linked()) return false;
  queue_.remove(work);
  return true;
}

void blocking_pool::thread_main() noexcept {
  set_runtime_of_thread(runtime_);
  manners_.adopt();
  if (hooks_.start) hooks_.start();
  std::thread former;
  member self;
  self.thread = ::gettid();
  {
    std::unique_lock lock(mutex_);
    members_.push_back(self);
    serve(lock, self);
    members_.remove(self);
    former = leave();
    ended_.notify_all();
  }
  if (former.joinable()) former.join();
  if (hooks_.stop) hooks_.stop();
}

void blocking_pool::serve(std::unique_lock<std::mutex>& lock, member& self) noexcept {
  --count_.starting;
  for (;;) {
    blocking_work* const work = nothing_to_do() ? nullptr : &queue_.front();
    void* given = nullptr;
    if (work) {
      queue_.remove(*work);
      self.work = work;
      if (work->caller) self.since = now_ns();
      lock.unlock();
      perturb();
      manners_.adopt();  // the last call may have changed it
      given = work->run();
      lock.lock();
      self.since = 0;
    }
    const bool free = nothing_to_do() && !is_surplus();
    if (free) ++count_.idle;
    if (work) {
      lock.unlock();
      work->finish(given);
      perturb();
      lock.lock();
    }
    if (!free) {
      if (is_surplus()) return;
      continue;
    }
    wake_.wait_for(lock, keep_alive_, [this] { return count_.called > 0 || shut_; });
    if (count_.called == 0) {
      --count_.idle;
      return;
    }
    --count_.called;
  }
}

// Mutex held. Returns the thread that the calling thread must join. Returns none if shut has detached the caller.
std::thread blocking_pool::leave() noexcept {
  const auto mine = std::ranges::find(threads_, std::this_thread::get_id(), &std::thread::get_id);
  if (mine == threads_.end()) return {};
  std::swap(*mine, threads_.back());
  std::thread former = std::exchange(last_ended_, std::move(threads_.back()));
  threads_.pop_back();
  return former;
}

void blocking_pool::shut() noexcept {
  std::unique_lock lock(mutex_);
  shut_ = true;
  wake_.notify_all();
  ended_.wait(lock, [this] { return threads_.size() <= count_.given_up; });
  for (std::thread& given_up : threads_) given_up.detach();
  threads_.clear();
  std::thread last = std::move(last_ended_);
  lock.unlock();
  if (last.joinable()) last.join();
}

void blocking_pool::give_up(blocking_work& work) noexcept {
  const std::lock_guard lock(mutex_);
  work.caller = nullptr;
  ++count_.given_up;
  ended_.notify_all();
}

void blocking_pool::given_up_ends() noexcept {
  const std::lock_guard lock(mutex_);
  --count_.given_up;
}

blocking_pool::counts blocking_pool::now() const noexcept {
  const std::lock_guard lock(mutex_);
  return {threads_.size(), queue_.size(), count_.idle, count_.lent};
}

}  // namespace ulexite::detail
