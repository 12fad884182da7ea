#include "goker.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace goker {
namespace {

// The lock of a name is waited for under the lock of all names, which its release needs.
void hugo3251(bool mended) {
  struct names {
    shared_mutex all;
    mutex one;
  };
  const auto n = std::make_shared<names>();
  task_group users;
  for (int i = 0; i < 2; ++i)
    users.spawn([=] {
      {
        std::unique_lock held(n->all);
        if (mended) held.unlock();
        n->one.lock();
      }
      const std::shared_lock held(n->all);
      n->one.unlock();
    });
  users.wait();
}

// The making of a page asks for its own content, which is made under the same lock.
void hugo5379(bool mended) {
  const auto content = std::make_shared<mutex>();
  const auto word_count = [=] { const lock held(*content); };
  unique making(*content);
  if (mended) making.unlock();
  word_count();
}

// An event is waited for under the lock that its handler takes first.
void istio16224(bool mended) {
  struct monitor {
    mutex m;
    token ready{1};
  };
  const auto s = std::make_shared<monitor>();
  task_group all;
  all.spawn([=] {
    const lock held(s->m);
    s->ready.send(1);
  });
  unique held(s->m);
  if (mended) held.unlock();
  static_cast<void>(s->ready.receive());
  if (held.owns_lock()) held.unlock();
  all.wait();
}

// An agent leaves when no process is active, and a second one that was started has no receiver for its report.
void istio17860(bool mended) {
  struct agent {
    explicit agent(std::size_t room) : statuses(room) {}
    mutex m;
    token statuses;
    int active = 0;
  };
  const auto a = std::make_shared<agent>(mended ? 2 : 0);
  const auto start = [=] {
    {
      const lock held(a->m);
      ++a->active;
    }
    go([=] { a->statuses.send(1); });
  };
  go([=] {
    do {
      static_cast<void>(a->statuses.receive());
      const lock held(a->m);
      if (--a->active == 0) return;
    } while (true);
  });
  start();
  start();
}

// A timer that has fired is reset: its value was fetched before, and is waited for once more.
void istio18454(bool mended) {
  struct strategy {
    token fired{1}, resets{1};
    event closed;
  };
  const auto s = std::make_shared<strategy>();
  task_group all;
  all.spawn([=] { s->fired.send(1); });
  all.spawn([=] { s->resets.send(1); });
  all.spawn([=] {
    bool has_fired = false;
    for (;;) {
      const std::size_t what =
          select(on_receive(s->fired, [&](auto&&) { has_fired = true; }), on_receive(s->resets), on_set(s->closed));
      if (what == 2) return;
      int old = 0;
      if (what == 1 && mended) static_cast<void>(s->fired.try_receive(old));
      if (what == 1 && !mended && has_fired) static_cast<void>(s->fired.receive());  // it was stopped too late
    }
  });
  this_fiber::sleep_for(1ms);
  s->closed.set();
  all.wait();
}

// Two requests hold the only places, and each waits for its lock. The request that would unlock them waits for an
// answer.
void serving2137(bool mended) {
  struct breaker {
    counting_semaphore<> places{1};
    mutex first, second;
    token accepted;
  };
  const auto b = std::make_shared<breaker>();
  b->first.lock();
  b->second.lock();
  const auto request = [=](mutex& its) {
    if (mended) {
      const lock held(its);
      return;
    }
    b->places.acquire();
    {
      const lock held(its);
    }
    b->accepted.send(1);
    b->places.release();
  };
  task_group all;
  all.spawn([=] { request(b->first); });
  all.spawn([=] { request(b->second); });
  b->first.unlock();
  if (!mended) static_cast<void>(b->accepted.receive());  // the first, unless the second has the place
  b->second.unlock();
  if (!mended) static_cast<void>(b->accepted.receive());
  all.wait();
}

// A mapping is cleared under its lock, and reports this by a function that takes the lock.
void syncthing4829(bool mended) {
  mutex mapping;
  const auto notify = [&] { const lock held(mapping); };
  unique clearing(mapping);
  if (mended) clearing.unlock();
  notify();
}

// The handler of a message closes the connection, and the close waits for the loop that runs the handler.
void syncthing5795(bool mended) {
  struct connection {
    token inbox;
    event loop_ended;
    event closing;
  };
  const auto c = std::make_shared<connection>();
  const auto close = [=] {
    c->closing.set();
    c->loop_ended.wait();
  };
  go([=] {
    while (select(on_receive(c->inbox, [&](auto&&) { mended ? go(close) : close(); }), on_set(c->closing)) == 0) {
    }
    c->loop_ended.set();
  });
  c->inbox.send(1);
}

// ---- bugs that do not block: a wrong value, found by a check ----

void check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// A check and the act on it under two locks: a lease is given twice.
void etcd4876(bool mended) {
  struct state {
    mutex m;
    int holders = 0;
  };
  const auto s = std::make_shared<state>();
  task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([=] {
      unique held(s->m);
      const bool free = s->holders == 0;
      if (!mended) {
        held.unlock();
        held.lock();
      }
      if (free) ++s->holders;
    });
  all.wait();
  check(s->holders == 1, "one holder");
}

// A wait group is waited for before its last add.
void grpc2371(bool mended) {
  struct state {
    wait_group calls;
    mutex m;
    int served = 0;
    bool closed = false;
  };
  const auto s = std::make_shared<state>();
  const auto serve = [=] {
    const lock held(s->m);
    check(!s->closed, "a call after the end");
    ++s->served;
  };
  if (mended) s->calls.add();
  auto caller = spawn([=] {
    if (!mended) s->calls.add();
    serve();
    s->calls.done();
  });
  s->calls.wait();
  {
    const lock held(s->m);
    s->closed = true;
  }
  caller.get();
}

// A channel is closed by two that both found it open.
void kubernetes82550(bool mended) {
  struct state {
    mutex m;
    bool closed = false;
    int closes = 0;
  };
  const auto s = std::make_shared<state>();
  const auto close = [=] {
    unique held(s->m);
    if (s->closed) return;
    if (!mended) {
      held.unlock();
      this_fiber::yield();
      held.lock();
    }
    s->closed = true;
    check(++s->closes == 1, "a close of a closed channel");
  };
  task_group all;
  for (int i = 0; i < 2; ++i) all.spawn(close);
  all.wait();
}

// A variable of the loop is shared by the fibers that the loop starts.
void cockroach35501(bool mended) {
  struct state {
    mutex m;
    int current = 0;
    std::vector<int> seen;
  };
  const auto s = std::make_shared<state>();
  task_group all;
  for (int i = 0; i < 3; ++i) {
    {
      const lock held(s->m);
      s->current = i;
    }
    all.spawn([=] {
      const lock held(s->m);
      s->seen.push_back(mended ? i : s->current);
    });
  }
  all.wait();
  int sum = 0;
  for (const int each : s->seen) sum += each;
  check(sum == 0 + 1 + 2, "each turn once");
}

constexpr bug bugs_of_others[] = {
    {"hugo/3251", hugo3251},
    {"hugo/5379", hugo5379},
    {"istio/16224", istio16224},
    {"istio/17860", istio17860},
    {"istio/18454", istio18454},
    {"serving/2137", serving2137},
    {"syncthing/4829", syncthing4829},
    {"syncthing/5795", syncthing5795},
    {"etcd/4876", etcd4876},
    {"grpc/2371", grpc2371},
    {"kubernetes/82550", kubernetes82550},
    {"cockroach/35501", cockroach35501},
};

}  // namespace

std::span<const bug> others() { return bugs_of_others; }

}  // namespace goker
