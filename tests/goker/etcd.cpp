#include "goker.hpp"

namespace goker {
namespace {

// A callback is called under the lock that it takes.
void etcd10492(bool mended) {
  const auto m = std::make_shared<shared_mutex>();
  const auto checkpoint = [=] { const std::unique_lock held(*m); };
  std::unique_lock renewing(*m);
  if (mended) renewing.unlock();
  checkpoint();
}

// A failure returns with the read lock held, and the close waits for it.
void etcd5509(bool mended) {
  const auto client = std::make_shared<shared_mutex>();
  const auto acquire = [=](bool fails) {
    client->lock_shared();
    if (fails && !mended) return;
    client->unlock_shared();
  };
  go([=] { acquire(true); });
  this_fiber::yield();
  client->lock();
  client->unlock();
}

// The client asks for its leader under the lock that every request takes for reading.
void etcd6708(bool mended) {
  shared_mutex client;
  std::unique_lock syncing(client);
  if (mended) syncing.unlock();
  const std::shared_lock request(client);
}

// A request for the status has no receiver after the node has stopped.
void etcd6857(bool mended) {
  struct node {
    token status;
    event stop, done;
  };
  const auto n = std::make_shared<node>();
  go([=] {
    while (select(on_receive(n->status), on_set(n->stop)) == 0) {
    }
    n->done.set();
  });
  go([=] {
    if (mended)
      select(on_send(n->status, 1), on_set(n->done));
    else
      n->status.send(1);
  });
  n->stop.set();
  n->done.wait();
}

// The stop waits under the lock for a fiber that needs the lock for its last update.
void etcd6873(bool mended) {
  struct broadcasts {
    mutex m;
    token updates{1};
    event done;
  };
  const auto b = std::make_shared<broadcasts>();
  go([=] {
    while (b->updates.receive()) {
      const lock held(b->m);
    }
    b->done.set();
  });
  b->updates.send(1);
  unique held(b->m);
  b->updates.close();
  if (mended) held.unlock();
  b->done.wait();
}

// A connection is torn down under the lock of the balancer, and the balancer is notified over a channel.
void etcd7443(bool mended) {
  struct balancer {
    explicit balancer(std::size_t room) : notices(room) {}
    mutex m;
    token notices;
    bool closed = false;
  };
  const auto b = std::make_shared<balancer>(mended ? 1 : 0);
  task_group all;
  all.spawn([=] {
    const lock held(b->m);
    if (b->closed) return;
    b->notices.send(1);
  });
  all.spawn([=] {
    const lock held(b->m);
    b->closed = true;
    int notice = 0;
    static_cast<void>(b->notices.try_receive(notice));
  });
  all.wait();
}

// A token is added over a channel with its lock held; the keeper takes that lock to delete the old ones.
void etcd7492(bool mended) {
  struct store {
    explicit store(std::size_t room) : added(room) {}
    mutex tokens;
    token added;
    event stopping;
  };
  const auto s = std::make_shared<store>(mended ? 3 : 0);
  task_group keeper, users;
  keeper.spawn([=] {
    for (;;) {
      const std::size_t what =
          select(on_receive(s->added), on_set(s->stopping), after(1ms, [&] { const lock held(s->tokens); }));
      if (what == 1) return;
    }
  });
  for (int i = 0; i < 3; ++i)
    users.spawn([=] {
      this_fiber::sleep_for(1ms);
      const lock held(s->tokens);
      s->added.send(1);
    });
  users.wait();
  s->stopping.set();
  keeper.wait();
}

// A follower waits under the lock for the next round, which the leader begins under the same lock.
void etcd7902(bool mended) {
  struct election {
    mutex m;
    event next;
  };
  const auto e = std::make_shared<election>();
  task_group all;
  all.spawn([=] {
    unique held(e->m);
    if (mended) held.unlock();
    e->next.wait();
  });
  all.spawn([=] {
    const lock held(e->m);
    e->next.set();
  });
  all.wait();
}

constexpr bug bugs_of_etcd[] = {
    {"etcd/10492", etcd10492}, {"etcd/5509", etcd5509}, {"etcd/6708", etcd6708}, {"etcd/6857", etcd6857},
    {"etcd/6873", etcd6873},   {"etcd/7443", etcd7443}, {"etcd/7492", etcd7492}, {"etcd/7902", etcd7902},
};

}  // namespace

std::span<const bug> etcd() { return bugs_of_etcd; }

}  // namespace goker
