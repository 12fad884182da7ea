#include "contract/contract.hpp"

#include <mutex>
#include <shared_mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

// A mutex that a fiber holds, and one that is free.
template <class Mutex, class F>
calls of_mutex(F take) {
  struct state {
    Mutex free, taken;
  };
  const auto on = std::make_shared<state>();
  auto release = held_by_a_fiber([=](auto& stay) {
    const std::lock_guard lock(on->taken);
    stay();
  });
  return {.ready = [=] { take(on->free); }, .waiting = [=] { take(on->taken); }, .release = release};
}

struct waited_for {
  mutex guard;
  condition_variable changed;
  condition_variable_any changed_any;
  bool over = false;

  void end() {
    {
      const std::lock_guard lock(guard);
      over = true;
    }
    changed.notify_all();
    changed_any.notify_all();
  }
  auto is_over() {
    return [this] { return over; };
  }
};

// `wait` gets the state and its lock.
template <class F>
calls of_condition(F wait) {
  const auto on = std::make_shared<waited_for>();
  const auto over = std::make_shared<waited_for>();
  over->over = true;
  const auto call = [wait](waited_for& at) {
    std::unique_lock lock(at.guard);
    wait(at, lock);
  };
  return {.ready = [=] { call(*over); }, .waiting = [=] { call(*on); }, .release = [=] { on->end(); }};
}

template <class F>
calls of_semaphore(F take) {
  struct state {
    counting_semaphore<> free{1000}, taken{0};
  };
  const auto on = std::make_shared<state>();
  return {
      .ready = [=] { take(on->free); }, .waiting = [=] { take(on->taken); }, .release = [=] { on->taken.release(2); }};
}

// `take` gets a future that has its value, and one that gets it late.
template <class F>
calls of_future(F take) {
  const auto promises = std::make_shared<std::pair<promise<int>, promise<int>>>();
  const auto now = std::make_shared<shared_future<int>>(promises->first.get_future().share());
  const auto late = std::make_shared<shared_future<int>>(promises->second.get_future().share());
  promises->first.set_value(1);
  return {.ready = [=] { take(*now); },
          .waiting = [=] { take(*late); },
          .release =
              [=, given = std::make_shared<bool>(false)] {
                if (!std::exchange(*given, true)) promises->second.set_value(2);
              }};
}

const section locks{
    "Locks",
    {
        {"lock", [] { return of_mutex<mutex>([](auto& on) { const std::lock_guard lock(on); }); }},
        {"lock", [] { return of_mutex<timed_mutex>([](auto& on) { const std::lock_guard lock(on); }); }},
        {"lock", [] { return of_mutex<recursive_mutex>([](auto& on) { const std::lock_guard lock(on); }); }},
        {"lock", [] { return of_mutex<shared_mutex>([](auto& on) { const std::lock_guard lock(on); }); }},
        {"lock_shared", [] { return of_mutex<shared_mutex>([](auto& on) { const std::shared_lock lock(on); }); }},
        {"synchronized::with_lock",
         [] {
           struct state {
             synchronized<int> free, taken;
           };
           const auto on = std::make_shared<state>();
           auto release = held_by_a_fiber([=](auto& stay) { on->taken.with_lock([&](int&) { stay(); }); });
           return calls{.ready = [=] { on->free.with_lock([](int& value) { ++value; }); },
                        .waiting = [=] { on->taken.with_lock([](int& value) { ++value; }); },
                        .release = release};
         }},
        {"try_lock",
         [] {
           const auto on = std::make_shared<mutex>();
           return calls{.ready = [=] {
             if (on->try_lock()) on->unlock();
           }};
         }},
        {"unlock",
         [] {
           const auto on = std::make_shared<shared_mutex>();
           return calls{.ready = [=] {
             if (on->try_lock_shared()) on->unlock_shared();
           }};
         }},
        {"condition_variable::wait",
         [] { return of_condition([](auto& at, auto& lock) { at.changed.wait(lock, at.is_over()); }); }},
        {"condition_variable::wait",
         [] { return of_condition([](auto& at, auto& lock) { at.changed_any.wait(lock, at.is_over()); }); }},
        {"condition_variable::wait_for",
         [] { return of_condition([](auto& at, auto& lock) { (void)at.changed.wait_for(lock, 1h, at.is_over()); }); }},
        {"condition_variable_any",
         [] {
           return of_condition(
               [](auto& at, auto& lock) { (void)at.changed_any.wait_for(lock, std::stop_token(), 1h, at.is_over()); });
         }},
        {"notify_one",
         [] {
           const auto on = std::make_shared<condition_variable>();
           return plain([=] { on->notify_one(); });
         }},
        {"counting_semaphore::acquire", [] { return of_semaphore([](auto& on) { on.acquire(); }); }},
        {"try_acquire_for", [] { return of_semaphore([](auto& on) { (void)on.try_acquire_for(1h); }); }},
        {"semaphore_permit", [] { return of_semaphore([](auto& on) { const semaphore_permit permit(on); }); }},
        {"try_acquire",
         [] {
           const auto on = std::make_shared<counting_semaphore<>>(0);
           return plain([=] { (void)on->try_acquire(); });
         }},
        {"release",
         [] {
           const auto on = std::make_shared<counting_semaphore<>>(0);
           return plain([=] { on->release(); });
         }},
        {"call_once",
         [] {
           struct state {
             once_flag done, under_way;
           };
           const auto on = std::make_shared<state>();
           call_once(on->done, [] {});
           auto release = held_by_a_fiber([=](auto& stay) { call_once(on->under_way, stay); });
           return calls{.ready = [=] { call_once(on->done, [] {}); },
                        .waiting = [=] { call_once(on->under_way, [] {}); },
                        .release = release};
         }},
        {"future::get", [] { return of_future([](auto& of) { (void)of.get(); }); }},
        {"wait", [] { return of_future([](auto& of) { of.wait(); }); }},
        {"promise::set_value", [] { return calls{.ready = [] { promise<int>().set_value(1); }, .sometimes = true}; }},
    }};

}  // namespace
