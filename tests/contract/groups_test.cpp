#include "contract/contract.hpp"

#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

// A gate that stays closed, and one that is open.
template <class Gate, class... A>
calls of_gate(void (*open)(Gate&), void (*pass)(Gate&), A... made) {
  struct state {
    Gate opened, closed;
    explicit state(A... made) : opened(made...), closed(made...) {}
  };
  const auto on = std::make_shared<state>(made...);
  open(on->opened);
  return {
      .ready = [=] { pass(on->opened); }, .waiting = [=] { pass(on->closed); }, .release = [=] { open(on->closed); }};
}

template <class Gate, class... A>
calls of_step(void (*step)(Gate&), A... made) {
  const auto on = std::make_shared<Gate>(made...);
  return plain([=] { step(*on); });
}

// `wait` gets a function for a child: one that ends at once, or one that waits for the release.
calls of_children(std::function<void(std::function<void()> child)> wait) {
  const auto end = std::make_shared<event>();
  return {
      .ready = [=] { wait(nullptr); }, .waiting = [=] { wait([=] { end->wait(); }); }, .release = [=] { end->set(); }};
}

const section rows{
    "Groups",
    {
        {"task_group::wait",
         [] {
           struct state {
             event end;
             task_group empty, used;
           };
           const auto on = std::make_shared<state>();
           on->used.spawn([&end = on->end] { end.wait(); });
           return calls{.ready = [=] { on->empty.wait(); },
                        .waiting = [=] { on->used.wait(); },
                        .release = [=] { on->end.set(); }};
         }},
        {"scope",
         [] {
           return of_children([](std::function<void()> child) {
             scope([&](task_group& group) {
               if (child) group.spawn(child);
             });
           });
         }},
        {"when_all",
         [] {
           return of_children([](std::function<void()> child) {
             if (child)
               when_all(child, child);
             else
               when_all(std::vector<std::function<void()>>());
           });
         }},
        {"task_group",
         [] {
           struct state {
             event end;
             task_group full{on_error::cancel_siblings, 1}, empty{on_error::cancel_siblings, 1000};
           };
           const auto on = std::make_shared<state>();
           on->full.spawn([&end = on->end] { end.wait(); });
           return calls{.ready = [=] { on->empty.spawn([] {}); },
                        .waiting = [=] { on->full.spawn([] {}); },
                        .release = [=] { on->end.set(); }};
         }},
        {"task_group::try_spawn",
         [] { return of_step<task_group>([](task_group& on) { (void)on.try_spawn([] {}); }); }},
        {"join_set::next",
         [] {
           struct state {
             event end;
             join_set<> ended, used;
           };
           const auto on = std::make_shared<state>();
           for (int i = 0; i < 3; ++i) on->ended.spawn([] {});
           wait_until_others_wait();
           on->used.spawn([&end = on->end] { end.wait(); });
           return calls{.ready = [=] { (void)on->ended.next(); },
                        .waiting = [=] { (void)on->used.next(); },
                        .release = [=] { on->end.set(); }};
         }},
        {"~task_group", [] { return calls{.ready = [] { const task_group none; }, .sometimes = true}; }},
        {"~join_set", [] { return calls{.ready = [] { const join_set<> none; }, .sometimes = true}; }},
        {"task_group::request_stop", [] { return of_step<task_group>([](task_group& on) { on.request_stop(); }); }},
        {"std::stop_source", [] { return of_step<std::stop_source>([](std::stop_source& on) { request_stop(on); }); }},
        {"parallel_invoke", [] { return calls{.ready = [] { parallel_invoke([] {}, [] {}); }, .sometimes = true}; }},
        {"parallel_for", [] { return calls{.ready = [] { parallel_for(0, 10, [](int) {}); }, .sometimes = true}; }},
        {"parallel_reduce",
         [] {
           return calls{
               .ready =
                   [] { (void)parallel_reduce(0, 10, 0, [](int i) { return i; }, [](int a, int b) { return a + b; }); },
               .sometimes = true};
         }},
        {"wait_group::wait",
         [] {
           return of_gate<wait_group>(
               [](wait_group& on) {
                 if (on.count() > 0) on.done();
               },
               [](wait_group& on) { on.wait(); }, 1);
         }},
        {"latch::wait",
         [] {
           return of_gate<latch>(
               [](latch& on) {
                 if (!on.try_wait()) on.count_down();
               },
               [](latch& on) { on.wait(); }, 1);
         }},
        {"event::wait", [] { return of_gate<event>([](event& on) { on.set(); }, [](event& on) { on.wait(); }); }},
        {"auto_reset_event::wait",
         [] {
           return of_gate<auto_reset_event>([](auto_reset_event& on) { on.set(); },
                                            [](auto_reset_event& on) { on.wait(); });
         }},
        {"wait_group::add",
         [] {
           return of_step<wait_group>([](wait_group& on) {
             on.add();
             on.done();
           });
         }},
        {"latch::count_down", [] { return of_step<latch>([](latch& on) { on.count_down(); }, 1000); }},
        {"set", [] { return of_step<event>([](event& on) { on.set(); }); }},
        {"reset", [] { return of_step<auto_reset_event>([](auto_reset_event& on) { on.reset(); }); }},
        {"try_wait", [] { return of_step<auto_reset_event>([](auto_reset_event& on) { (void)on.try_wait(); }); }},
        {"barrier::arrive_and_wait",
         [] {
           struct state {
             barrier<> alone{1}, of_two{2};
           };
           const auto on = std::make_shared<state>();
           const auto given = std::make_shared<bool>(false);
           return calls{.ready = [=] { on->alone.arrive_and_wait(); },
                        .waiting = [=] { on->of_two.arrive_and_wait(); },
                        .release =
                            [=] {
                              if (!std::exchange(*given, true)) (void)on->of_two.arrive();
                            }};
         }},
        {"barrier::arrive",
         [] {
           const auto on = std::make_shared<barrier<>>(1);
           return calls{.ready = [=] { (void)on->arrive(); }, .sometimes = true};
         }},
        {"arrive_and_drop",
         [] {
           const auto on = std::make_shared<barrier<>>(1000);
           return calls{.ready = [=] { on->arrive_and_drop(); }, .sometimes = true};
         }},
    }};

}  // namespace
