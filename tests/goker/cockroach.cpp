#include "goker.hpp"

#include <array>

namespace goker {
namespace {

// Heartbeats are queued under one lock and sent under another: two fibers take the two in different orders.
void cockroach10214(bool mended) {
  struct state {
    mutex coalesced, raft;
    int queued = 0;
  };
  const auto s = std::make_shared<state>();
  task_group all;
  all.spawn([=] {
    unique first(s->coalesced);
    if (mended) first.unlock();
    const lock second(s->raft);
  });
  all.spawn([=] {
    const lock first(s->raft);
    const lock second(s->coalesced);
    ++s->queued;
  });
  all.wait();
}

// stop() waits for the tasks while it holds the lock that a task needs to say that it has ended.
void cockroach1055(bool mended) {
  struct state {
    mutex m;
    wait_group workers;
    bool draining = false;
  };
  const auto s = std::make_shared<state>();
  s->workers.add();
  go([=] {
    {
      const lock held(s->m);
      static_cast<void>(s->draining);
    }
    s->workers.done();
  });
  unique held(s->m);
  s->draining = true;
  if (mended) held.unlock();
  s->workers.wait();
}

// The reader of the results leaves at the cancellation; the fibers that drain the channels of the others stay.
void cockroach10790(bool mended) {
  struct state {
    event cancelled;
    std::array<token, 2> results;
  };
  const auto s = std::make_shared<state>();
  for (int i = 0; i < 2; ++i)
    go([=] {
      if (mended)
        select(on_receive(s->results[i]), on_set(s->cancelled));
      else
        static_cast<void>(s->results[i].receive());
    });
  go([=] {
    for (token& each : s->results)
      if (select(on_send(each, 1), on_set(s->cancelled)) == 1) return;
  });
  s->cancelled.set();
}

// A transaction starts a fiber that waits for the end of its context. No code ends the context.
void cockroach13197(bool mended) {
  const auto done = std::make_shared<event>();
  go([=] { done->wait(); });
  if (mended) done->set();
}

// The same with the rows of a query that are not closed, when the query has found something.
void cockroach13755(bool mended) {
  struct state {
    event cancelled;
    token ended;
  };
  const auto s = std::make_shared<state>();
  go([=] {
    s->cancelled.wait();
    s->ended.close();
  });
  if (!mended) return;
  s->cancelled.set();
  static_cast<void>(s->ended.receive());
}

// The receiver of events stops at the stop signal, while the sender may be in its send.
void cockroach1462(bool mended) {
  struct state {
    token events;
    event stopping;
    wait_group workers;
  };
  const auto s = std::make_shared<state>();
  s->workers.add(2);
  go([=] {
    while (!s->stopping.is_set()) {
      if (mended)
        select(on_send(s->events, 1), on_set(s->stopping));
      else
        s->events.send(1);
      this_fiber::yield();
    }
    s->workers.done();
  });
  go([=] {
    while (select(on_receive(s->events), on_set(s->stopping)) == 0) {
    }
    s->workers.done();
  });
  this_fiber::yield();
  s->stopping.set();
  s->workers.wait();
}

// A read lock inside of a read lock: a writer in between waits for the first, and the second for the writer.
void cockroach16167(bool mended) {
  const auto m = std::make_shared<shared_mutex>();
  task_group all;
  all.spawn([=] {
    std::shared_lock outer(*m);
    if (mended) outer.unlock();
    const std::shared_lock inner(*m);
  });
  all.spawn([=] { const std::unique_lock writer(*m); });
  all.wait();
}

// The consumer of the work leaves at the cancellation, the producer does not.
void cockroach18101(bool mended) {
  struct state {
    token ready;
    event cancelled;
  };
  const auto s = std::make_shared<state>();
  go([=] {
    for (int i = 0; i < 3; ++i)
      if (!mended)
        s->ready.send(i);
      else if (select(on_send(s->ready, i), on_set(s->cancelled)) == 1)
        return;
  });
  go([=] { s->cancelled.set(); });
  for (int i = 0; i < 3; ++i)
    if (select(on_receive(s->ready), on_set(s->cancelled)) == 1) return;
}

// Two loops send each other events over channels without room.
void cockroach2448(bool mended) {
  struct state {
    explicit state(std::size_t room) : callbacks(room) {}
    token events;
    token callbacks;
  };
  const auto s = std::make_shared<state>(mended ? 4 : 0);
  task_group both;
  both.spawn([=] {
    for (int sent = 0, received = 0; sent + received < 4;)
      if (sent < 2 && select(on_send(s->events, sent), on_receive(s->callbacks, [&](auto&&) { ++received; })) == 0) {
        ++sent;
        if (sent == 1) s->events.send(-1);  // a second event, and no look at the callbacks
      } else if (sent == 2) {
        static_cast<void>(s->callbacks.receive());
        ++received;
      }
  });
  both.spawn([=] {
    for (int i = 0; i < 3; ++i)
      if (*s->events.receive() != -1) s->callbacks.send(i);
  });
  both.wait();
}

// A suggestion may be in the channel, which has room for one, before the start puts its own there.
void cockroach24808(bool mended) {
  struct state {
    token suggestions{1};
    event stopping;
  };
  const auto s = std::make_shared<state>();
  int one = 1;
  s->suggestions.send(1);
  if (mended)
    static_cast<void>(s->suggestions.try_send(one));
  else
    s->suggestions.send(1);
  go([=] {
    while (select(on_receive(s->suggestions), on_set(s->stopping)) == 0) {
    }
  });
  s->stopping.set();
}

// A look at whether the store is draining waits until it does.
void cockroach25456(bool mended) {
  token draining;
  int nothing = 0;
  if (mended)
    static_cast<void>(draining.try_receive(nothing));
  else
    static_cast<void>(draining.receive());
}

// The outbox ends at its start, and does not notify the fibers that push rows.
void cockroach35073(bool mended) {
  struct state {
    token rows{2};
    task_group pushers;
  };
  const auto s = std::make_shared<state>();
  const auto push = [=] {
    try {
      s->rows.send(1);
    } catch (const channel_closed&) {
    }
  };
  push();
  push();
  s->pushers.spawn(push);
  go([=] {
    if (mended) s->rows.close();
  });
  s->pushers.wait();
}

// The cancellation is put into one stream after the other; the first is full, and its reader waits for the second.
void cockroach35931(bool mended) {
  struct state {
    token left{1}, right{1};
  };
  const auto s = std::make_shared<state>();
  s->left.send(1);
  task_group reader;
  reader.spawn([=] {
    static_cast<void>(s->right.receive());
    static_cast<void>(s->left.receive());
  });
  if (mended) {
    s->right.send(0);
    s->left.send(0);
  } else {
    s->left.send(0);
    s->right.send(0);
  }
  reader.wait();
}

// A read lock in a call chain that holds it already.
void cockroach3710(bool mended) {
  struct store {
    shared_mutex m;
    int status = 0;
    int raft_status() {
      const std::shared_lock held(m);
      return status;
    }
  };
  const auto s = std::make_shared<store>();
  task_group all;
  all.spawn([=] {
    std::shared_lock held(s->m);
    if (mended) held.unlock();
    static_cast<void>(s->raft_status());
  });
  all.spawn([=] {
    const std::unique_lock held(s->m);
    ++s->status;
  });
  all.wait();
}

// A loop is left while its lock is held.
void cockroach584(bool mended) {
  struct state {
    mutex m;
    bool closed = false;
  };
  const auto s = std::make_shared<state>();
  task_group all;
  all.spawn([=] {
    for (;;) {
      s->m.lock();
      if (s->closed) {
        if (mended) s->m.unlock();
        break;
      }
      s->m.unlock();
      this_fiber::sleep_for(1ms);
    }
  });
  all.spawn([=] {
    for (int i = 0; i < 2; ++i) {
      const lock held(s->m);
      s->closed = true;
    }
  });
  all.wait();
}

// A read lock, then another for the text of a message, while a second look-up wants to write.
void cockroach6181(bool mended) {
  const auto cache = std::make_shared<shared_mutex>();
  const auto describe = [=] { const std::shared_lock held(*cache); };
  const auto look_up = [=] {
    {
      std::shared_lock held(*cache);
      if (mended) held.unlock();
      describe();
    }
    const std::unique_lock held(*cache);
  };
  task_group all;
  for (int i = 0; i < 2; ++i) all.spawn(look_up);
  all.wait();
}

// A lease is released under lease, then table; it is acquired under table, then lease.
void cockroach7504(bool mended) {
  struct state {
    mutex lease, table;
  };
  const auto s = std::make_shared<state>();
  task_group all;
  all.spawn([=] {
    unique held(s->lease);
    if (mended) held.unlock();
    const lock second(s->table);
  });
  all.spawn([=] {
    const lock held(s->table);
    const lock second(s->lease);
  });
  all.wait();
}

// The exit of a logger locks what the entry has locked.
void cockroach9935(bool mended) {
  const auto m = std::make_shared<mutex>();
  const auto exit = [=] { const lock held(*m); };
  task_group all;
  all.spawn([=] {
    unique held(*m);
    if (mended) held.unlock();
    exit();
  });
  all.wait();
}

constexpr bug bugs_of_cockroach[] = {
    {"cockroach/10214", cockroach10214}, {"cockroach/1055", cockroach1055},   {"cockroach/10790", cockroach10790},
    {"cockroach/13197", cockroach13197}, {"cockroach/13755", cockroach13755}, {"cockroach/1462", cockroach1462},
    {"cockroach/16167", cockroach16167}, {"cockroach/18101", cockroach18101}, {"cockroach/2448", cockroach2448},
    {"cockroach/24808", cockroach24808}, {"cockroach/25456", cockroach25456}, {"cockroach/35073", cockroach35073},
    {"cockroach/35931", cockroach35931}, {"cockroach/3710", cockroach3710},   {"cockroach/584", cockroach584},
    {"cockroach/6181", cockroach6181},   {"cockroach/7504", cockroach7504},   {"cockroach/9935", cockroach9935},
};

}  // namespace

std::span<const bug> cockroach() { return bugs_of_cockroach; }

}  // namespace goker
