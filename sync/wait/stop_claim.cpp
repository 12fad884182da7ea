#include <ulexite/sync/wait/stop_claim.hpp>

#include <utility>

namespace ulexite::detail {

// Not inline, because the destructor asks for the thread's id, and a compiler may use the id from before the wait.
bool stop_claim::deregister() noexcept {
  callback_.reset();
  return std::exchange(claimed_, false);
}

}  // namespace ulexite::detail
