#include <ulexite/interop/c/handles.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/fiber_local.hpp>

#include <string>

namespace ulexite::detail::c {
namespace {

// A value of C, which the function of its key destroys.
struct value_of_c {
  value_of_c() = default;
  value_of_c(const value_of_c&) = delete;
  value_of_c& operator=(const value_of_c&) = delete;
  ~value_of_c() {
    if (data && destroy) destroy(data);
    if (copy) release(copy);
  }
  void set(void* value) {
    if (value && !copy && in_fiber() && embedder_has_memory()) copy = static_cast<void**>(allocate(sizeof(void*)));
    if (copy) *copy = value;
    data = value;
  }
  void* data = nullptr;
  void** copy = nullptr;  // of `data`, where a collector sees it. A plain thread has none, because it may outlive hooks
  void (*destroy)(void*) = nullptr;
};

struct key {
  explicit key(void (*destroy)(void*)) : destroy_(destroy) {}
  fiber_local<value_of_c> values;
  void (*destroy_)(void*);
};

key& key_of(ulx_key number) {
  if (number == 0) throw std::invalid_argument("a ulx_key of 0 is none");
  return *reinterpret_cast<key*>(number);
}

}  // namespace
}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

ulx_mutex* ulx_mutex_new(void) noexcept {
  return made([] { return new ulx_mutex; });
}
void ulx_mutex_destroy(ulx_mutex* mutex) noexcept {
  if (!refused_in_handler()) delete mutex;
}
int ulx_mutex_lock(ulx_mutex* mutex) noexcept {
  return guarded([&] {
    mutex->of.lock();
    return 0;
  });
}
bool ulx_mutex_try_lock(ulx_mutex* mutex) noexcept { return !refused_in_handler() && mutex->of.try_lock(); }
int ulx_mutex_unlock(ulx_mutex* mutex) noexcept {
  return guarded([&] {
    mutex->of.unlock();
    return 0;
  });
}

ulx_condition* ulx_condition_new(void) noexcept {
  return made([] { return new ulx_condition; });
}
void ulx_condition_destroy(ulx_condition* condition) noexcept {
  if (!refused_in_handler()) delete condition;
}

// A cancellation point, unlike std's wait without a stop_token: a wait with a deadline is one.
int ulx_condition_wait(ulx_condition* condition, ulx_mutex* mutex, int64_t deadline) noexcept {
  return guarded([&] {
    std::unique_lock lock(mutex->of, std::adopt_lock);
    struct keep_locked {
      std::unique_lock<ulexite::mutex>& lock;
      ~keep_locked() { lock.release(); }
    } const caller_has_it{lock};
    return condition->of.wait_until(lock, to_time(deadline)) == std::cv_status::timeout ? int{ULX_ETIMEDOUT} : 0;
  });
}
void ulx_condition_signal(ulx_condition* condition) noexcept {
  if (!refused_in_handler()) condition->of.notify_one();
}
void ulx_condition_broadcast(ulx_condition* condition) noexcept {
  if (!refused_in_handler()) condition->of.notify_all();
}

ulx_group* ulx_group_new(void) noexcept {
  return made([] { return new ulx_group; });
}
void ulx_group_destroy(ulx_group* group) noexcept {
  if (!refused_in_handler()) delete group;
}
int ulx_group_add(ulx_group* group, ptrdiff_t count) noexcept {
  return guarded([&] {
    group->of.add(count);
    return 0;
  });
}
int ulx_group_done(ulx_group* group) noexcept {
  return guarded([&] {
    group->of.done();
    return 0;
  });
}
int ulx_group_wait(ulx_group* group, int64_t deadline) noexcept {
  return guarded([&] { return group->of.wait_until(to_time(deadline)) ? 0 : int{ULX_ETIMEDOUT}; });
}

ulx_key ulx_key_new(void (*destroy)(void*)) noexcept {
  return reinterpret_cast<ulx_key>(made([&] { return new key(destroy); }));
}
void* ulx_get(ulx_key number) noexcept {
  return made([&] { return key_of(number).values.get().data; });
}
int ulx_set(ulx_key number, void* value) noexcept {
  return guarded([&] {
    key& of = key_of(number);
    value_of_c& mine = of.values.get();
    mine.set(value);
    mine.destroy = of.destroy_;
    return 0;
  });
}
}
