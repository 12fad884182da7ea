#include <ulexite/base/error.hpp>
#include <ulexite/sync/channel.hpp>

#include <string>

namespace ulexite {

void detail::refuse_capacity(std::size_t capacity) {
  throw usage_error("channel: a capacity of " + std::to_string(capacity) + " values is more than " +
                    std::to_string(unbounded));
}

}  // namespace ulexite
