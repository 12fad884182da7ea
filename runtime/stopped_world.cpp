#include <ulexite/fiber/stack_slab.hpp>
#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/runtime/task/unhandled.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <string>
#include <system_error>
#include <vector>

namespace ulexite {
namespace {

std::string words_for(const detail::late_fiber& late) {
  if (late.id == 0) return "worker " + std::to_string(late.worker);
  const bool named = late.where.known() && late.where.in_source();
  return detail::words_for_fiber(late.id, late.name) +
         (named ? " (spawned at " + std::string(late.where.source().file_name()) + ":" +
                      std::to_string(late.where.source().line()) + ")"
                : "") +
         " on worker " + std::to_string(late.worker);
}

}  // namespace

stopped_world::stopped_world(runtime& of, std::chrono::nanoseconds patience) : runtime_(detail::state_of(of)) {
  std::vector<detail::late_fiber> late;
  if (runtime_.stop_world(relative_timeout(patience).deadline(), late)) return;
  std::string message = "ulexite::stopped_world: did not come: ";
  for (std::size_t i = 0; i < late.size(); ++i) message += (i == 0 ? "" : ", ") + words_for(late[i]);
  if (late.empty()) message += "a worker that is being started, a write to a file, or a tick of the monitor";
  std::vector<std::uint64_t> ids;
  for (const detail::late_fiber& each : late) ids.push_back(each.id);
  throw late_fibers(std::move(ids), message);
}

stopped_world::~stopped_world() { runtime_.start_world(); }

std::optional<stack_bounds> stack_around(const void* address) noexcept {
  const detail::stack* const found = detail::stack_slab::holding(address);
  if (!found || address < found->low || address >= found->high) return std::nullopt;  // a guard is no stack
  return stack_bounds{found->low, found->high};
}

}  // namespace ulexite
