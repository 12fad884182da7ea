// Trees of groups in which fibers fail, are asked to stop, meet deadlines and run stop callbacks, all at random. When a
// tree's root has ended, nothing of the tree lives; and a runtime that is cancelled in the midst of it ends.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct failed : std::runtime_error {
  failed() : std::runtime_error("a node failed") {}
};

std::chrono::microseconds some_time(detail::random& random) { return std::chrono::microseconds(random.below(300)); }

class tree {
 public:
  tree(program& test, fiber_local<int>& depth) : test_(test), depth_(depth) {}

  // A node with up to `levels` below it. Throws failed, operation_cancelled, or nothing.
  void grow(detail::random random, int levels) {
    const counted here(*this);
    test_.moved();
    test_.check(*depth_ == 0, "a fiber has another's local value", *depth_);
    *depth_ = levels + 1;
    std::atomic<int> fired{0};
    const std::stop_callback count(this_fiber::get_stop_token(), [&fired] { ++fired; });
    std::optional<deadline_scope> limit;
    if (random.below(5) == 0) limit.emplace(some_time(random));
    if (levels == 0) {
      live(random);
    } else {
      branch(random, levels);
    }
    test_.check(fired <= 1, "a stop callback ran twice", fired);
    test_.check(*depth_ == levels + 1, "a local value has changed", *depth_);
  }

  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] channel<int>& values() { return values_; }

 private:
  struct counted {
    explicit counted(tree& t) : of(t) { ++of.nodes_; }
    ~counted() {
      const shield uninterrupted;
      if (of.nodes_ % 4 == 0) this_fiber::sleep_for(1us);  // cleaning up takes time
      --of.nodes_;
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    tree& of;
  };

  void live(detail::random& random) {
    for (std::uint32_t i = 0, n = random.below(4); i < n; ++i) switch (random.below(8)) {
        case 0: throw failed();
        case 1: this_fiber::sleep_for(some_time(random)); break;
        case 2: values_.send(1); break;
        case 3: values_.receive(); break;
        case 4: select(on_receive(values_, [](auto) {}), on_send(values_, 1), after(some_time(random))); break;
        case 5: this_fiber::check(); break;
        case 6: {
          const shield uninterrupted;
          this_fiber::sleep_for(some_time(random));
          break;
        }
        default: this_fiber::yield();
      }
  }

  void branch(detail::random& random, int levels) {
    const auto node = [&] { return [this, seed = random.next(), levels] { grow(detail::random(seed), levels - 1); }; };
    switch (random.below(6)) {
      case 0: when_all(node(), node(), node()); break;
      case 1: when_any(node(), node(), node()); break;
      case 2: {
        std::vector<join_handle<>> handles;
        for (std::uint32_t i = 0, n = random.below(4); i < n; ++i) handles.push_back(spawn(node()));
        when_all(handles);
        break;
      }
      case 3:
        scope([&](task_group& children) {
          for (std::uint32_t i = 0, n = 1 + random.below(3); i < n; ++i) children.spawn(node());
          live(random);
        });
        break;
      default: group_of(random, node);
    }
  }

  template <class Node>
  void group_of(detail::random& random, Node node) {
    const std::size_t limit = random.below(4) == 0 ? 8 : task_group::unlimited;  // more than children that spawn
    task_group group(random.below(2) == 0 ? on_error::keep_going : on_error::cancel_siblings, limit);
    std::vector<join_handle<>> kept;
    for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) {
      auto handle = group.spawn(node());
      if (random.below(2) == 0) kept.push_back(std::move(handle));
      if (random.below(8) == 0) group.spawn([&group, child = node()]() mutable { group.spawn(std::move(child)); });
    }
    if (random.below(6) == 0) throw failed();
    if (!kept.empty() && random.below(3) == 0) kept.front().request_stop();
    if (random.below(4) == 0) group.request_stop();
    if (random.below(4) == 0) this_fiber::check();
    group.wait();
    test_.check(group.size() == 0, "a group's wait left children", static_cast<long long>(group.size()));
  }

  program& test_;
  fiber_local<int>& depth_;
  std::atomic<int> nodes_{0};
  channel<int> values_;
};

// The outcome of the root does not matter; the test checks that all fibers have ended.
void grow_one(program& test, runtime& rt, fiber_local<int>& depth, detail::random& random) {
  tree one(test, depth);
  std::atomic<bool> asked{false};
  auto root = rt.spawn([&, seed = random.next()] {
    const deadline_scope limit(5ms);  // for all fibers: partners may never arrive
    try {
      one.grow(detail::random(seed), 3);
    } catch (...) {
      test.check(!this_fiber::stop_requested() || asked, "a scope that has ended still asks its body to stop");
      throw;
    }
  });
  if (random.below(3) == 0) {
    for (std::uint32_t i = 0, n = random.below(30); i < n; ++i) std::this_thread::yield();
    asked = true;
    root.request_stop();
  }
  try {
    root.get();
  } catch (const operation_cancelled&) {
  } catch (const failed&) {
  }
  // The fibers of when_all over handles are awaited only if that began.
  while (one.nodes() != 0) std::this_thread::yield();
}

void end_busy(program& test, fiber_local<int>& depth, detail::random& random) {
  tree one(test, depth);
  runtime rt({.threads = test.threads, .on_unhandled_exception = [](auto&) {}});
  for (std::uint32_t i = 0, n = 1 + random.below(8); i < n; ++i)
    rt.spawn([&one, seed = random.next()] { one.grow(detail::random(seed), 3); }).detach();
  for (std::uint32_t i = 0, n = random.below(50); i < n; ++i) std::this_thread::yield();
  const std::size_t left = rt.shutdown(shutdown_mode::cancel);
  test.check(left == 0, "fibers were abandoned by a cancel", static_cast<long long>(left));
  test.check(one.nodes() == 0, "nodes are left", one.nodes());
  test.check_metrics(rt, true);
  test.moved();
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  fiber_local<int> depth;
  return test.run_with_one_runtime(
      [&](runtime& rt, detail::random& random) {
        for (int i = 0; i < 20; ++i) grow_one(test, rt, depth, random);
        end_busy(test, depth, random);
      },
      {.on_unhandled_exception = [](auto&) {}});
}
