#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/wait_graph.hpp>

#include <algorithm>
#include <iterator>
#include <map>
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

std::vector<wait_edge> wait_graph::edges(std::size_t most) const {
  std::vector<wait_edge> all;
  for (const auto& [who, each] : nodes_) {
    if (!each.holder) continue;
    if (all.size() == most) break;
    const node* const holder = find(each.holder);
    all.push_back({each.fiber.id, holder ? holder->fiber.id : 0, each.fiber.name, holder ? holder->fiber.name : "",
                   describe_wait(each.fiber)});
  }
  return all;
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
  std::string text = known ? describe(known->fiber) : "a plain thread, or a fiber of another runtime,";
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
  for (const auto& [object, waiters] : by_mutex) text.push_back(describe_culprit(waiters.front()->holder, waiters));
  return text;
}

}  // namespace ulexite::detail
