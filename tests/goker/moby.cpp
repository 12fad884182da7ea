#include "goker.hpp"

namespace goker {
namespace {

// A count of devices returns with the lock held if there are none.
void moby17176(bool mended) {
  const auto m = std::make_shared<mutex>();
  const auto clean_up = [=](int deleted) {
    m->lock();
    if (deleted == 0 && !mended) return;
    m->unlock();
  };
  task_group all;
  all.spawn([=] { clean_up(0); });
  all.spawn([=] { const lock held(*m); });
  all.wait();
}

// The reader of the progress leaves early, and the transfer goes on reporting.
void moby21233(bool mended) {
  struct transfer {
    token progress;
    event released;
  };
  const auto t = std::make_shared<transfer>();
  go([=] {
    for (int i = 0; i < 3; ++i)
      if (mended)
        select(on_send(t->progress, i), on_set(t->released));
      else
        t->progress.send(i);
  });
  static_cast<void>(t->progress.receive());
  t->released.set();
}

// The wait for all plugins is inside of the loop that starts them.
void moby25384(bool mended) {
  const auto group = std::make_shared<wait_group>();
  group->add(2);
  for (int i = 0; i < 2; ++i) {
    go([=] { group->done(); });
    if (!mended) group->wait();
  }
  group->wait();
}

// A watcher removes a file and waits for the note of it, while the reader of events waits to give an event to the
// watcher.
void moby27782(bool mended) {
  struct watcher {
    mutex m;
    condition_variable removed;
    bool gone = false;
    token events;
    event closed;
  };
  const auto w = std::make_shared<watcher>();
  task_group all;
  all.spawn([=] {  // the reader of the events
    if (mended)
      select(on_send(w->events, 1), on_set(w->closed));
    else
      w->events.send(1);
    {
      const lock held(w->m);
      w->gone = true;
    }
    w->removed.notify_all();
  });
  all.spawn([=] {  // who follows the log
    if (select(on_receive(w->events), on_set(w->closed)) == 0) return;
    unique held(w->m);
    w->removed.wait(held, [&] { return w->gone; });
  });
  w->closed.set();
  all.wait();
}

// A probe takes the lock of the container; the change of state holds it, and waits for the probe to take the stop.
void moby28462(bool mended) {
  struct container {
    mutex m;
    token stop;
  };
  const auto c = std::make_shared<container>();
  task_group all;
  all.spawn([=] {
    for (;;) {
      int nothing = 0;
      if (c->stop.try_receive(nothing) == channel_status::closed || nothing == 1) return;
      const lock held(c->m);
      static_cast<void>(c->stop.capacity());
    }
  });
  all.spawn([=] {
    const lock held(c->m);
    if (mended)
      c->stop.close();
    else
      c->stop.send(1);
  });
  all.wait();
}

// A wait for a condition that is never notified.
void moby29733(bool mended) {
  struct plugins {
    mutex m;
    condition_variable activated;
    bool active = false;
  };
  const auto p = std::make_shared<plugins>();
  task_group all;
  all.spawn([=] {
    unique held(p->m);
    while (!p->active) p->activated.wait(held);
  });
  {
    const lock held(p->m);
    p->active = true;
  }
  if (mended) p->activated.notify_all();
  all.wait();
}

// The error of an activation is stored without a notification of the waiters.
void moby30408(bool mended) {
  struct manifest {
    mutex m;
    condition_variable activated;
    bool failed = false;
  };
  const auto p = std::make_shared<manifest>();
  task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([=] {
      unique held(p->m);
      while (!p->failed) p->activated.wait(held);
    });
  all.spawn([=] {
    const lock held(p->m);
    p->failed = true;
    if (mended) p->activated.notify_all();
  });
  all.wait();
}

// An error is sent over a channel without room and without a receiver.
void moby33293(bool mended) {
  token errors(mended ? 1 : 0);
  errors.send(1);
}

// A probe that is cancelled still has a result.
void moby33781(bool mended) {
  struct monitor {
    explicit monitor(std::size_t room) : results(room) {}
    token results;
    event stop;
  };
  const auto m = std::make_shared<monitor>(mended ? 1 : 0);
  go([=] { m->stop.set(); });
  go([=] { m->results.send(1); });
  select(on_receive(m->results), on_set(m->stop));
}

// A function that is called under a lock takes it.
void moby36114(bool mended) {
  mutex vm;
  unique held(vm);
  if (mended) held.unlock();
  const lock removing(vm);
}

// The caller of an asynchronous function does not fetch its result.
void moby4395(bool mended) {
  const auto result = std::make_shared<token>(mended ? 1 : 0);
  go([=] { result->send(1); });
}

// The lock of a device is taken under that of all, and the other way round in the deletion.
void moby4951(bool mended) {
  struct devices {
    mutex all, base;
  };
  const auto d = std::make_shared<devices>();
  task_group users;
  users.spawn([=] {
    unique device(d->base);
    if (mended) device.unlock();
    const lock global(d->all);
  });
  users.spawn([=] {
    const lock global(d->all);
    const lock device(d->base);
  });
  users.wait();
}

// A loop goes on to its next turn with the lock held.
void moby7559(bool mended) {
  const auto m = std::make_shared<mutex>();
  for (int turn = 0; turn < 2; ++turn) {
    m->lock();
    const bool failed = turn == 0;
    if (failed && !mended) continue;
    m->unlock();
  }
}

constexpr bug bugs_of_moby[] = {
    {"moby/17176", moby17176}, {"moby/21233", moby21233}, {"moby/25384", moby25384}, {"moby/27782", moby27782},
    {"moby/28462", moby28462}, {"moby/29733", moby29733}, {"moby/30408", moby30408}, {"moby/33293", moby33293},
    {"moby/33781", moby33781}, {"moby/36114", moby36114}, {"moby/4395", moby4395},   {"moby/4951", moby4951},
    {"moby/7559", moby7559},
};

}  // namespace

std::span<const bug> moby() { return bugs_of_moby; }

}  // namespace goker
