#include <ulexite/sync/wait/stop_claim.hpp>

#include <utility>

namespace ulexite::detail {

// Not inline: the destruction asks which thread this is, and a compiler may remember that from before the wait.
bool stop_claim::forget() noexcept {
  callback_.reset();
  return std::exchange(claimed_, false);
}

}  // namespace ulexite::detail
