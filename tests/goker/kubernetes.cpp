#include "goker.hpp"

#include <functional>
#include <optional>

namespace goker {
namespace {

// A status is sent under the lock that its receiver takes next.
void kubernetes10182(bool mended) {
  struct manager {
    explicit manager(std::size_t room) : statuses(room) {}
    mutex m;
    token statuses;
  };
  const auto s = std::make_shared<manager>(mended ? 2 : 0);
  task_group all;
  all.spawn([=] {
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(s->statuses.receive());
      const lock held(s->m);
    }
  });
  for (int i = 0; i < 2; ++i)
    all.spawn([=] {
      const lock held(s->m);
      s->statuses.send(1);
    });
  all.wait();
}

// One signal for a wait that may not have begun, and the waiter is waited for.
void kubernetes11298(bool mended) {
  struct notifier {
    mutex m;
    condition_variable changed;
    bool aborted = false;
  };
  const auto n = std::make_shared<notifier>();
  task_group loop;
  loop.spawn([=] {
    unique held(n->m);
    if (mended)
      n->changed.wait(held, [&] { return n->aborted; });
    else
      n->changed.wait(held);
  });
  {
    const lock held(n->m);
    n->aborted = true;
  }
  n->changed.notify_one();
  loop.wait();
}

// Caching begins under one lock and needs a second; an event comes under the second and needs the first.
void kubernetes13135(bool mended) {
  struct cacher {
    mutex m;
    mutex watch;
  };
  const auto c = std::make_shared<cacher>();
  const auto ready = std::make_shared<event>();
  task_group all;
  all.spawn([=] {
    for (int i = 0; i < 2; ++i) {
      unique held(c->m);
      if (mended) held.unlock();
      const lock second(c->watch);
      ready->set();
    }
  });
  all.spawn([=] {
    ready->wait();
    unique held(c->watch);
    if (mended) held.unlock();
    const lock second(c->m);
  });
  all.wait();
}

// Results are distributed under the lock that the stop of a watcher takes to close its channel.
void kubernetes1321(bool mended) {
  struct mux {
    mutex m;
    token results;
    event stopped;
  };
  const auto s = std::make_shared<mux>();
  task_group all;
  all.spawn([=] {
    const lock held(s->m);
    if (s->results.is_closed()) return;
    if (mended)
      select(on_send(s->results, 1), on_set(s->stopped));
    else
      s->results.send(1);
  });
  all.spawn([=] {
    s->stopped.set();
    const lock held(s->m);
    s->results.close();
  });
  all.wait();
}

// After an error the watcher still sends a result, and the stop does not fetch it.
void kubernetes25331(bool mended) {
  struct watch {
    token results;
    token errors{1};
    event cancelled;
  };
  const auto w = std::make_shared<watch>();
  go([=] {
    const std::size_t what = select(on_receive(w->errors), on_set(w->cancelled));
    if (what == 1) return;
    if (mended)
      select(on_send(w->results, 1), on_set(w->cancelled));
    else
      w->results.send(1);
  });
  w->errors.send(1);
  w->cancelled.set();
}

// A notice is sent under a lock that the receiver takes before it receives.
void kubernetes26980(bool mended) {
  struct listener {
    mutex m;
    condition_variable changed;
    token next;
    int pending = 0;
    bool stopped = false;
  };
  const auto l = std::make_shared<listener>();
  task_group all;
  all.spawn([=] {
    unique held(l->m);
    l->changed.wait(held, [&] { return l->pending > 0; });
    if (mended) held.unlock();
    l->next.send(1);
  });
  all.spawn([=] {
    {
      const lock held(l->m);
      l->pending = 1;
    }
    l->changed.notify_one();
    const lock held(l->m);
    l->stopped = true;
    if (mended) return;
    static_cast<void>(l->next.receive());
  });
  if (mended) static_cast<void>(l->next.receive());
  all.wait();
}

// A cluster is added under the queue's lock and wants the informer's; the informer stops under its own and wants the
// queue's.
void kubernetes30872(bool mended) {
  struct federation {
    mutex informer, queue;
  };
  const auto f = std::make_shared<federation>();
  const auto nested = [=](mutex& outer, mutex& inner) {
    unique held(outer);
    if (mended) held.unlock();
    const lock second(inner);
  };
  task_group all;
  all.spawn([=] { nested(f->queue, f->informer); });
  all.spawn([=] { nested(f->informer, f->queue); });
  all.wait();
}

// A watcher first sends its events, and no fiber receives them after the stop.
void kubernetes38669(bool mended) {
  struct watcher {
    token input, results;
    event stopped;
  };
  const auto w = std::make_shared<watcher>();
  go([=] {
    for (int i = 0; i < 2; ++i)
      if (mended)
        select(on_send(w->results, i), on_set(w->stopped));
      else
        w->results.send(i);
    while (w->input.receive()) {
    }
  });
  w->stopped.set();
  w->input.close();
}

// A request that ends after its time limit has no receiver for its answer.
void kubernetes5316(bool mended) {
  const auto answers = std::make_shared<token>(mended ? 1 : 0);
  go([=] {
    this_fiber::sleep_for(2ms);
    answers->send(1);
  });
  select(on_receive(*answers), after(1ms));
  this_fiber::sleep_for(5ms);  // after this time it has ended, or never will
}

// Two queues under one read lock. A fiber waits for the empty one with the lock held, and a writer wants the lock.
void kubernetes58107(bool mended) {
  struct queue {
    mutex m;
    condition_variable filled;
    int items = 0;
  };
  struct controller {
    shared_mutex workers;
    queue first, second;
  };
  const auto c = std::make_shared<controller>();
  const auto work = [=](queue& from) {
    std::shared_lock held(c->workers);
    if (mended) held.unlock();
    unique guard(from.m);
    from.filled.wait(guard, [&] { return from.items > 0; });
    --from.items;
  };
  const auto fill = [](queue& to) {
    {
      const lock guard(to.m);
      ++to.items;
    }
    to.filled.notify_one();
  };
  task_group all;
  all.spawn([=] { work(c->first); });
  all.spawn([=] {
    work(c->second);
    fill(c->first);
  });
  all.spawn([=] {
    {
      const std::unique_lock held(c->workers);
    }
    fill(c->second);
  });
  all.wait();
}

// A read lock inside of a read lock, with a writer in between.
void kubernetes62464(bool mended) {
  struct state {
    shared_mutex m;
    int cpus = 0;
    int get() {
      const std::shared_lock held(m);
      return cpus;
    }
  };
  const auto s = std::make_shared<state>();
  task_group all;
  all.spawn([=] {
    std::shared_lock held(s->m);
    if (mended) held.unlock();
    static_cast<void>(s->get());
  });
  all.spawn([=] {
    static_cast<void>(s->get());
    const std::unique_lock held(s->m);
    ++s->cpus;
  });
  all.wait();
}

// A frame is written under the lock, into a full channel. The fiber that would empty it wants the lock.
void kubernetes6632(bool mended) {
  struct connection {
    mutex writing;
    token resets{1};
    event closed;
  };
  const auto c = std::make_shared<connection>();
  task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([=] {
      const lock held(c->writing);
      try {
        if (mended)
          select(on_send(c->resets, 1), on_set(c->closed));
        else
          c->resets.send(1);
      } catch (const channel_closed&) {
      }
    });
  all.spawn([=] {
    c->closed.set();
    const lock held(c->writing);
    c->resets.close();
  });
  all.wait();
}

// A poller ends when its user says so, and the user returns early.
void kubernetes70277(bool mended) {
  struct poller {
    token ticks;
    event done;
  };
  const auto p = std::make_shared<poller>();
  go([=] {
    while (select(on_send(p->ticks, 1), on_set(p->done)) == 0) {
    }
  });
  static_cast<void>(p->ticks.receive());
  if (mended) p->done.set();
}

constexpr bug bugs_of_kubernetes[] = {
    {"kubernetes/10182", kubernetes10182}, {"kubernetes/11298", kubernetes11298}, {"kubernetes/13135", kubernetes13135},
    {"kubernetes/1321", kubernetes1321},   {"kubernetes/25331", kubernetes25331}, {"kubernetes/26980", kubernetes26980},
    {"kubernetes/30872", kubernetes30872}, {"kubernetes/38669", kubernetes38669}, {"kubernetes/5316", kubernetes5316},
    {"kubernetes/58107", kubernetes58107}, {"kubernetes/62464", kubernetes62464}, {"kubernetes/6632", kubernetes6632},
    {"kubernetes/70277", kubernetes70277},
};

}  // namespace

std::span<const bug> kubernetes() { return bugs_of_kubernetes; }

}  // namespace goker
