// A program that hangs in several ways, for inspector_browser.py and for pictures of the page. It runs until it is
// killed, because some of its fibers cannot end.
//
//   inspector_browser WAITERS OTHERS CIRCLE HOGS
//
// WAITERS clients wait for a mutex, whose holder waits to send. OTHERS wait for a channel or an event, or each for the
// end of one more fiber; one of them makes a blocking call, and a plain thread waits for the event. CIRCLE fibers wait
// for each other's mutexes. HOGS fibers never leave their workers.

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>
#include <ulexite/interop/inspector.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ux = ulexite;
using namespace std::chrono_literals;

namespace {

[[gnu::noinline]] void parse(std::atomic<unsigned>& rounds) {
  for (;;) ++rounds;
}

class program {
 public:
  void start_clients(int waiters) {
    if (waiters == 0) return;
    all_.spawn({.name = "writer"}, [this] {
      const std::lock_guard lock(table_);
      written_.set();
      results_.send(42);
    });
    written_.wait();
    for (int i = 0; i < waiters; ++i) all_.spawn({.name = "client"}, [this] { const std::lock_guard lock(table_); });
    all_.spawn({.name = "audit"}, [this]() -> ux::task<> { const auto lock = co_await ux::co_lock(table_); });
  }

  void start_others(int others) {
    if (others == 0) return;
    std::thread([this] { configured_.wait(); }).detach();
    all_.spawn({.name = "loader"}, [] { ux::blocking([] { std::this_thread::sleep_for(1h); }); });
    for (int i = 0; i < others; ++i) {
      if (i % 6 < 3) {
        all_.spawn([this] { requests_.receive(); });
      } else if (i % 6 < 5) {
        all_.spawn([this] { configured_.wait(); });
      } else {
        all_.spawn([] { ux::spawn([] { ux::this_fiber::sleep_for(1h); }).join(); });
      }
    }
  }

  void start_circle(std::size_t size) {
    forks_ = std::vector<ux::mutex>(size);
    for (std::size_t i = 0; i < size; ++i)
      all_.spawn({.name = "philosopher"}, [this, i, size] {
        const std::lock_guard first(forks_[i]);
        seated_.arrive_and_wait(size);
        const std::lock_guard second(forks_[(i + 1) % size]);
      });
    if (size != 0)
      all_.spawn({.name = "guest"}, [this] {
        seated_.all.wait();
        const std::lock_guard fork(forks_[0]);
      });
  }

  void start_hogs(int hogs) {
    for (int i = 0; i < hogs; ++i) all_.spawn({.name = "parser"}, [this] { parse(rounds_); });
  }

  void tick() {
    for (;;) ux::this_fiber::sleep_for(2ms);
  }

 private:
  struct seats {
    std::atomic<std::size_t> taken{0};
    ux::event all;
    void arrive_and_wait(std::size_t size) {
      if (++taken == size) all.set();
      all.wait();
    }
  };

  ux::mutex table_;
  const ux::object_name table_name_{table_, "the table"};
  ux::channel<int> results_, requests_;
  ux::event written_, configured_;
  std::vector<ux::mutex> forks_;
  std::atomic<unsigned> rounds_{0};
  seats seated_;
  ux::task_group all_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const auto number = [&](int i) { return std::atoi(arguments[i]); };
  ux::runtime runtime({.threads = static_cast<std::size_t>(2 + number(4))});
  const ux::inspector inspector(runtime, {.port = 0});
  std::cout << "inspector on http://" << inspector.endpoint().str() << '/' << std::endl;
  runtime.run([&] {
    program planted;
    planted.start_clients(number(1));
    planted.start_circle(static_cast<std::size_t>(number(3)));
    planted.start_others(number(2));
    planted.start_hogs(number(4));
    planted.tick();
  });
}
