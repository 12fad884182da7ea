#pragma once

// The certain waits between fibers. A fiber that waits for a mutex waits for its holder, and a joining fiber waits for
// the joined one. So each fiber has at most one edge, and a walk finds circles.

#include <ulexite/runtime/worker/inspection.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace ulexite::detail {

// Waiting fibers that are alike, and the fiber for which they wait; or such fibers, one for each of them.
struct wait_edge {
  static constexpr std::size_t most_waiters = 16;

  std::vector<fiber_record> waiters;  // some of them, the oldest wait first
  std::size_t count = 0;              // of waiters
  fiber_record holder;                // number 0: a plain thread, or a fiber of another runtime
  std::size_t holder_count = 1;
  bool in_circle = false;  // the holder waits for the waiter too
};

class wait_graph {
 public:
  struct node {
    fiber_record fiber;
    const agent* holder = nullptr;
  };
  using circle = std::vector<const node*>;

  void add(const fiber_record& fiber, const agent* holder);

  // The fibers that wait for each other, in the order of their waits. They refer to the graph.
  [[nodiscard]] std::vector<circle> circles() const;
  // Whether no timer ends it.
  [[nodiscard]] static bool lasts(const circle& of);
  // Whether, in addition, no request to stop ends one of its waits.
  [[nodiscard]] static bool is_certain(const circle& of);
  // Sentences about these circles, and about holders that keep others waiting and wait themselves for something else.
  [[nodiscard]] std::vector<std::string> findings(const std::vector<circle>& circles) const;
  // At most `most` of the edges: those of the circles, then those with the most waiters. Fibers are alike if they were
  // spawned at one place, and wait for one fiber in one way, or for fibers that are alike.
  [[nodiscard]] std::vector<wait_edge> edges(const std::vector<circle>& circles, std::size_t most) const;

 private:
  class likeness;
  [[nodiscard]] const node* find(const agent* who) const;
  [[nodiscard]] static std::string describe_circle(const circle& of);
  [[nodiscard]] std::string describe_culprit(const agent* holder, const std::vector<const node*>& waiters) const;

  std::unordered_map<const agent*, node> nodes_;
  std::unordered_map<const void*, std::size_t> waiters_at_;  // by object
};

}  // namespace ulexite::detail
