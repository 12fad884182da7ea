#include "contract/contract.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/no_suspend.hpp>

#include <sstream>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

// `use` gets a handle of a fiber that has ended, and of one that ends at the release.
calls of_handle(void (*use)(join_handle<>&)) {
  struct state {
    std::shared_ptr<event> end = std::make_shared<event>();  // also the fiber's, which may begin after the release
    join_handle<> ended, under_way;
  };
  const auto on = std::make_shared<state>();
  on->ended = spawn([] {});
  while (!on->ended.done()) this_fiber::yield();
  on->under_way = spawn([end = on->end] { end->wait(); });
  return {.ready = [=] { use(on->ended); }, .waiting = [=] { use(on->under_way); }, .release = [=] { on->end->set(); }};
}

template <class Context>
calls of_spawn(std::shared_ptr<Context> in) {
  return plain([=] { in->spawn([] {}).detach(); });
}

// Deletes itself.
struct quick_job : job {
  quick_job() {
    run = [](job* self) noexcept { delete static_cast<quick_job*>(self); };
  }
};

void schedule_one(auto schedule) {
  auto made = std::make_unique<quick_job>();
  schedule(*made);
  (void)made.release();
}

const section rows{
    "Fibers",
    {
        {"spawn", [] { return plain([] { spawn([] {}).detach(); }); }},
        {"schedule", [] { return plain([] { schedule_one([](job& made) { schedule(made); }); }); }},
        {"runtime::spawn", [] { return plain([&rt = current_runtime()] { rt.spawn([] {}).detach(); }); }},
        {"runtime::schedule",
         [] { return plain([&rt = current_runtime()] { schedule_one([&](job& made) { rt.schedule(made); }); }); }},
        {"join_handle::join",
         [] {
           return of_handle([](join_handle<>& of) {
             if (of.joinable()) of.join();
           });
         }},
        {"get",
         [] {
           return of_handle([](join_handle<>& of) {
             if (of.joinable()) of.get();
           });
         }},
        {"join_handle::done",
         [] {
           const auto of = std::make_shared<join_handle<>>(spawn([] {}));
           return plain([=] {
             (void)of->done();
             (void)of->id();
             of->request_stop();
           });
         }},
        {"current_runtime", [] { return plain([] { (void)current_runtime(); }); }},
        {"this_fiber::deadline", [] { return plain([] { (void)this_fiber::deadline(); }); }},
        {"this_fiber::yield", [] { return plain([] { this_fiber::yield(); }); }},
        {"this_fiber::sleep_for",
         [] {
           return calls{.ready = [] { this_fiber::sleep_for(0s); }, .waiting = [] { this_fiber::sleep_for(1h); }};
         }},
        {"sleep_until",
         [] {
           return calls{.ready = [] { this_fiber::sleep_until(steady_clock::now()); },
                        .waiting = [] { this_fiber::sleep_until(steady_clock::now() + 1h); }};
         }},
        {"this_fiber::check", [] { return plain([] { this_fiber::check(); }); }},
        {"metrics",
         [] {
           return plain([&rt = current_runtime()] {
             (void)rt.metrics();
             (void)rt.times();
           });
         }},
        {"runtime::dump",
         [] {
           return plain([&rt = current_runtime()] {
             std::ostringstream out;
             rt.dump(out);
             rt.dump_json(out);
             rt.write_prometheus(out);
           });
         }},
        {"concurrent_context::spawn", [] { return of_spawn(std::make_shared<concurrent_context>()); }},
        {"parallel_context::spawn", [] { return of_spawn(std::make_shared<parallel_context>("beside", 1)); }},
        {"concurrent_context::wait",
         [] {
           struct state {
             event end;
             concurrent_context empty, used;
           };
           const auto on = std::make_shared<state>();
           on->used.spawn([&end = on->end] { end.wait(); }).detach();
           return calls{.ready = [=] { on->empty.wait(); },
                        .waiting = [=] { on->used.wait(); },
                        .release = [=] { on->end.set(); }};
         }},
        {"isolated_context::join",
         [] {
           struct state {
             event end;
             isolated_context ended{"ended", [] {}};
             isolated_context under_way{"under way", [this] { end.wait(); }};
           };
           const auto on = std::make_shared<state>();
           on->ended.join();
           return calls{.ready = [=] { on->ended.join(); },
                        .waiting = [=] { on->under_way.join(); },
                        .release = [=] { on->end.set(); }};
         }},
        {"this_fiber::migrate_to",
         [] { return calls{.ready = [&rt = current_runtime()] { this_fiber::migrate_to(rt); }, .sometimes = true}; }},
        {"no_migration_scope", [] { return plain([] { const no_migration_scope guard; }); }},
        {"no_suspend_scope", [] { return plain([] { const no_suspend_scope guard; }); }},
        {"on_thread_stack", [] { return plain([] { on_thread_stack([] {}); }); }},
        {"for_each_fiber",
         [] {
           return plain([&rt = current_runtime()] {
             int there = 0;
             for_each_fiber(rt, [&](const fiber_view&) { ++there; });
             (void)stack_around(&there);
           });
         }},
        {"runtime::resize", [] { return plain([&rt = current_runtime()] { rt.resize(2); }); }},
        {"set_user_data", [] { return plain([] { this_fiber::set_user_data(nullptr); }); }},
        {"this_fiber::user_data", [] { return plain([] { (void)this_fiber::user_data(); }); }},
        {"fiber_local::get",
         [] {
           const auto of = std::make_shared<fiber_local<int>>();
           return plain([=] { ++of->get(); });
         }},
    }};

const section blocking_calls{
    "Calls that block",
    {
        {"blocking(f)",
         [] {
           const auto end = std::make_shared<event>();
           return calls{.ready = [] { blocking([] {}); },
                        .waiting = [=] { blocking([=] { end->wait(); }); },
                        .release = [=] { end->set(); }};
         }},
        {"block_in_place(f)", [] { return calls{.ready = [] { block_in_place([] {}); }, .sometimes = true}; }},
    }};

const section coroutines{
    "Coroutines",
    {
        {"co_spawn", [] { return plain([] { co_spawn([]() -> task<> { co_return; }()).detach(); }); }},
    }};

}  // namespace
