#include "goker.hpp"

#include <optional>

namespace goker {
namespace {

// The close of a stream does not tell its reader.
void grpc1275(bool mended) {
  struct stream {
    token received;
    event done;
  };
  const auto s = std::make_shared<stream>();
  go([=] {
    static_cast<void>(s->received.receive());
    s->done.set();
  });
  if (mended) s->received.close();
  s->done.wait();
}

// A balancer sends updates under its lock, and the receiver needs the lock to work on one.
void grpc1353(bool mended) {
  struct balancer {
    explicit balancer(std::size_t room) : updates(room) {}
    mutex m;
    token updates;
  };
  const auto b = std::make_shared<balancer>(mended ? 2 : 0);
  task_group all;
  all.spawn([=] {
    for (int i = 0; i < 2; ++i) {
      const lock held(b->m);
      b->updates.send(i);
    }
  });
  all.spawn([=] {
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(b->updates.receive());
      const lock held(b->m);
    }
  });
  all.wait();
}

// The watcher waits for addresses that are no longer sent, and never reports that it has none.
void grpc1424(bool mended) {
  struct connection {
    token addresses;
    event done;
  };
  const auto c = std::make_shared<connection>();
  task_group watcher;
  watcher.spawn([=] {
    while (c->addresses.receive()) {
    }
    if (mended) c->done.set();
  });
  go([=] { c->done.wait(); });
  c->addresses.close();
  watcher.wait();
}

// Keep-alive waits, with the lock held, for a wake by a fiber that needs the lock.
void grpc1460(bool mended) {
  struct transport {
    mutex m;
    token awaken{1};
  };
  const auto t = std::make_shared<transport>();
  task_group all;
  all.spawn([=] {
    unique held(t->m);
    if (mended) held.unlock();
    static_cast<void>(t->awaken.receive());
  });
  all.spawn([=] {
    const lock held(t->m);
    t->awaken.send(1);
  });
  all.wait();
}

// A timer finds that its work was taken back, and leaves with the lock held.
void grpc3017(bool mended) {
  struct cache {
    mutex m;
    bool aborted = false;
  };
  const auto c = std::make_shared<cache>();
  task_group all;
  for (int i = 0; i < 3; ++i) {
    c->m.lock();
    c->aborted = false;
    c->m.unlock();
    all.spawn([=] {
      this_fiber::sleep_for(1ms);
      c->m.lock();
      if (c->aborted && !mended) return;
      c->m.unlock();
    });
    this_fiber::sleep_for(1ms);
    const lock held(c->m);
    c->aborted = true;
  }
  all.wait();
}

// The caller returns at the stop, and the last call has no receiver for its answer.
void grpc660(bool mended) {
  struct client {
    explicit client(std::size_t room) : answers(room) {}
    token answers;
    event stop;
  };
  const auto c = std::make_shared<client>(mended ? 1 : 0);
  go([=] { c->answers.send(1); });
  go([=] { c->stop.set(); });
  select(on_receive(c->answers), on_set(c->stop));
}

// A graceful stop returns with the lock held.
void grpc795(bool mended) {
  const auto m = std::make_shared<mutex>();
  const auto stop = [=] {
    m->lock();
    if (mended) m->unlock();
  };
  task_group all;
  all.spawn([=] { const lock serving(*m); });
  for (int i = 0; i < 2; ++i) all.spawn(stop);
  all.wait();
}

// A dial that fails leaves the fiber that resets its connection.
void grpc862(bool mended) {
  struct connection {
    event closed;
  };
  const auto c = std::make_shared<connection>();
  go([=] {
    while (!c->closed.wait_for(1h)) {
    }
  });
  const bool failed = true;
  if (failed && mended) c->closed.set();
}

constexpr bug bugs_of_grpc[] = {
    {"grpc/1275", grpc1275}, {"grpc/1353", grpc1353}, {"grpc/1424", grpc1424}, {"grpc/1460", grpc1460},
    {"grpc/3017", grpc3017}, {"grpc/660", grpc660},   {"grpc/795", grpc795},   {"grpc/862", grpc862},
};

}  // namespace

std::span<const bug> grpc() { return bugs_of_grpc; }

}  // namespace goker
