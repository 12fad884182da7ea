#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/wait_graph.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_set>

namespace ulexite::detail {

void wait_graph::add(const fiber_record& fiber, const agent* holder) {
  const agent* const who = reinterpret_cast<const agent*>(fiber.who) - 1;
  nodes_.insert_or_assign(who, node{fiber, holder});
  if (fiber.state == fiber_record::status::waiting && fiber.object) ++waiters_at_[fiber.object];
}

const wait_graph::node* wait_graph::find(const agent* who) const {
  const auto found = nodes_.find(who);
  return found == nodes_.end() ? nullptr : &found->second;
}

// Each walk ends at a fiber without an edge, or at a fiber that an earlier walk has visited. If it reaches a fiber that
// it has visited itself, it has found a circle.
std::vector<wait_graph::circle> wait_graph::circles() const {
  std::vector<circle> found;
  std::unordered_map<const node*, std::size_t> seen_in;
  std::size_t walk = 0;
  for (const auto& [who, first] : nodes_) {
    circle steps;
    const node* at = &first;
    for (++walk; at && !seen_in.contains(at); at = at->holder ? find(at->holder) : nullptr) {
      seen_in[at] = walk;
      steps.push_back(at);
    }
    if (!at || seen_in[at] != walk) continue;
    steps.erase(steps.begin(), std::ranges::find(steps, at));
    found.push_back(std::move(steps));
  }
  return found;
}

// Puts the fibers of the graph into classes. A fiber of a circle, or for which several fibers wait, is like no other.
class wait_graph::likeness {
 public:
  using members = std::vector<const node*>;  // null: not a fiber of this runtime

  likeness(const wait_graph& graph, const std::vector<circle>& circles) : graph_(graph) {
    std::unordered_set<const agent*> waited_for;
    for (const auto& [who, each] : graph.nodes_)
      if (each.holder && !waited_for.insert(each.holder).second) unlike_.insert(each.holder);
    for (const circle& each : circles) in_circle_.insert(each.begin(), each.end());
    for (const auto& [who, each] : graph.nodes_)
      if (each.holder) add(who);
    const auto rank = [](const node* of) { return std::pair(-std::int64_t{of->fiber.waited}, of->fiber.id); };
    for (members& each : classes_)
      if (each.front()) std::ranges::sort(each, {}, rank);
  }

  [[nodiscard]] std::vector<wait_edge> edges(std::size_t most) const {
    std::vector<const members*> waiters;
    for (const members& each : classes_)
      if (each.front() && each.front()->holder) waiters.push_back(&each);
    std::ranges::sort(waiters, {}, [&](const members* each) {
      return std::tuple(!in_circle_.contains(each->front()), -static_cast<std::int64_t>(each->size()),
                        each->front()->fiber.id);
    });
    waiters.resize(std::min(most, waiters.size()));
    std::vector<wait_edge> edges;
    for (const members* each : waiters) edges.push_back(edge_of(*each, *each->front()));
    return edges;
  }

 private:
  using key = std::tuple<spawn_place, fiber_record::status, wait_kind, const void*, std::size_t>;
  static constexpr std::size_t nobody = SIZE_MAX, foreign = SIZE_MAX - 1;  // in place of the holder's class

  [[nodiscard]] bool is_unlike(const agent* who, const node* known) const {
    return unlike_.contains(who) || in_circle_.contains(known);
  }

  // Without recursion, because a chain of waits may be as long as there are fibers. A class has its holders' in its
  // key.
  void add(const agent* who) {
    std::vector<const agent*> path;
    for (const agent* at = who; at && !class_of_.contains(at);) {
      path.push_back(at);
      const node* const known = graph_.find(at);
      at = known && !in_circle_.contains(known) ? known->holder : nullptr;
    }
    for (; !path.empty(); path.pop_back()) put(path.back(), graph_.find(path.back()));
  }
  void put(const agent* who, const node* known) {
    std::size_t of = classes_.size();
    if (!is_unlike(who, known)) of = known_.try_emplace(key_of(known), of).first->second;
    if (of == classes_.size()) classes_.emplace_back();
    classes_[of].push_back(known);
    class_of_[who] = of;
  }
  [[nodiscard]] key key_of(const node* known) const {
    if (!known) return {{}, fiber_record::status::running, wait_kind::none, nullptr, foreign};
    const auto& [fiber, holder] = *known;
    if (!holder) return {fiber.where, fiber.state, fiber.kind, nullptr, nobody};
    const bool one = is_unlike(holder, graph_.find(holder));
    return {fiber.where, fiber.state, fiber.kind, one ? fiber.object : nullptr, class_of_.at(holder)};
  }

  [[nodiscard]] wait_edge edge_of(const members& waiters, const node& first) const {
    wait_edge edge;
    for (const node* each : waiters)
      if (edge.waiters.size() < wait_edge::most_waiters) edge.waiters.push_back(each->fiber);
    edge.count = waiters.size();
    // Each of several holders has one of the waiters. The edge from them names the same one of them.
    const node* holder = graph_.find(first.holder);
    const bool several = holder && !is_unlike(first.holder, holder);
    if (several) holder = classes_[class_of_.at(first.holder)].front();
    if (holder) edge.holder = holder->fiber;
    edge.holder_count = several ? waiters.size() : 1;
    edge.in_circle = in_circle_.contains(&first);
    return edge;
  }

  const wait_graph& graph_;
  std::unordered_set<const agent*> unlike_;
  std::unordered_set<const node*> in_circle_;
  std::map<key, std::size_t> known_;
  std::vector<members> classes_;
  std::unordered_map<const agent*, std::size_t> class_of_;
};

std::vector<wait_edge> wait_graph::edges(const std::vector<circle>& circles, std::size_t most) const {
  return likeness(*this, circles).edges(most);
}

bool wait_graph::lasts(const circle& of) {
  return std::ranges::none_of(of, [](const node* each) { return each->fiber.timed; });
}

bool wait_graph::is_certain(const circle& of) {
  return lasts(of) && std::ranges::none_of(of, [](const node* each) { return each->fiber.cancellable; });
}

std::string wait_graph::describe_circle(const circle& of) {
  const auto first = std::ranges::min_element(of, {}, [](const node* each) { return each->fiber.id; });
  std::string text = "circle: " + describe((*first)->fiber);
  for (auto at = first;;) {
    const fiber_record& waiter = (*at)->fiber;
    text += (at == first ? " waits " : ", which waits ") + describe_time(waiter.waited) + ' ' + describe_wait(waiter);
    at = std::next(at) == of.end() ? of.begin() : std::next(at);
    if (waiter.kind == wait_kind::mutex) text += ", held by " + describe((*at)->fiber);
    if (at == first) break;
  }
  return text;
}

std::string wait_graph::describe_culprit(const agent* holder, const std::vector<const node*>& waiters) const {
  const node& oldest = **std::ranges::max_element(waiters, {}, [](const node* n) { return n->fiber.waited; });
  const std::string what = describe_wait(oldest.fiber).substr(sizeof "for" - 1);  // " mutex 0x..."
  const node* const known = find(holder);
  std::string text =
      known ? describe(known->fiber) : "a plain thread, or a fiber of another runtime (or nobody: was it destroyed?),";
  text += " holds" + what + ", for which " + std::to_string(waiters.size()) +
          (waiters.size() == 1 ? " fiber waits" : " fibers wait") + " (" + describe_time(oldest.fiber.waited) + ")";
  if (!known) return text;
  const fiber_record& fiber = known->fiber;
  if (fiber.state != fiber_record::status::waiting)
    return text + (fiber.state == fiber_record::status::running ? ", and runs" : ", and is about to run");
  text += ", and waits " + describe_time(fiber.waited) + ' ' + describe_wait(fiber);
  const auto at = waiters_at_.find(fiber.object);
  if (at != waiters_at_.end() && at->second == 1) text += ", where no other fiber waits";
  return text;
}

std::vector<std::string> wait_graph::findings(const std::vector<circle>& circles) const {
  std::vector<std::string> text;
  std::unordered_set<const node*> in_circle;
  for (const circle& each : circles) {
    text.push_back(describe_circle(each));
    in_circle.insert(each.begin(), each.end());
  }
  std::map<const void*, std::vector<const node*>> by_mutex;
  for (const auto& [who, each] : nodes_)
    if (each.holder && each.fiber.kind == wait_kind::mutex && !in_circle.contains(&each))
      by_mutex[each.fiber.object].push_back(&each);
  const auto most_waiters_first = [](const std::vector<const node*>& a, const std::vector<const node*>& b) {
    return std::tuple(b.size(), a.front()->fiber.object) < std::tuple(a.size(), b.front()->fiber.object);
  };
  std::vector<std::vector<const node*>> by_number;
  for (auto& [object, waiters] : by_mutex) by_number.push_back(std::move(waiters));
  std::ranges::sort(by_number, most_waiters_first);
  for (const auto& waiters : by_number) text.push_back(describe_culprit(waiters.front()->holder, waiters));
  return text;
}

}  // namespace ulexite::detail
