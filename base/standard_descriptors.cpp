#include <ulexite/base/kernel.hpp>
#include <ulexite/base/standard_descriptors.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ulexite::detail {
namespace {

constinit std::mutex one_at_a_time;

}  // namespace

// The kernel gives the lowest free number, so a higher one than expected means that another thread was faster.
standard_descriptors_taken::standard_descriptors_taken() : turn_(one_at_a_time) {
  for (int fd = 0; fd < 3; ++fd) {
    if (result_or_errno(::fcntl(fd, F_GETFD)) != -EBADF) continue;
    const int placeholder = ::open("/", O_PATH | O_CLOEXEC);
    if (placeholder == fd) {
      taken_[static_cast<std::size_t>(fd)] = true;
    } else if (placeholder >= 0) {
      ::close(placeholder);
    }
  }
}

standard_descriptors_taken::~standard_descriptors_taken() {
  const int error = last_errno();  // of what the caller has made
  for (int fd = 0; fd < 3; ++fd) {
    if (taken_[static_cast<std::size_t>(fd)]) ::close(fd);
  }
  set_last_errno(error);
}

}  // namespace ulexite::detail
